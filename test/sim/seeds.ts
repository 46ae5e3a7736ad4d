/** Seeds that have shown something, and what; they are run whatever else is. */
export const FAILED_ONCE: readonly { readonly seed: number; readonly found: string }[] = [
  { seed: 151, found: "a piece of job output that came after a failed write made the controller go round in circles" },
];
