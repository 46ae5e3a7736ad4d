import type { Shell } from "../declared/shell.ts";
import { CANCELLED } from "../failure.ts";

/** Does work that goes on until Ctrl-C, which is no failure to tell of. Returns the exit code. */
export async function untilInterrupted(shell: Shell, work: () => Promise<void>): Promise<number | void> {
  const signal = shell.ended();
  try {
    return await work();
  } catch (error) {
    if (!signal.aborted) throw error;
    return CANCELLED;
  }
}
