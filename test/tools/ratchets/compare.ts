import type { Measured } from "./measure.ts";

const KINDS = [
  "functions",
  "classes",
  "files",
  "readmes",
  "comments",
  "loops",
] as const satisfies readonly (keyof Measured)[];

const ADVICE: Readonly<Record<keyof Measured, string>> = {
  functions: "split the function by purpose",
  classes: "split the class by purpose",
  files: "split the file by topic",
  readmes: "give a folder below a page of its own, and say it in fewer words",
  comments: "rewrite the comment: subject first, active verb",
  loops: "begin each call where its rejection is expected",
};

/** Complaints about new or larger entries, and about a list whose numbers are too high. */
export function complaints(measured: Measured, listed: Measured): readonly string[] {
  return KINDS.flatMap((kind) => {
    const grown = Object.entries(measured[kind]).filter(([name, size]) => size > (listed[kind][name] ?? 0));
    const isLower = Object.entries(listed[kind]).some(([name, size]) => (measured[kind][name] ?? 0) < size);
    return [
      ...grown.map(([name, size]) => `${kind}: ${name} ${size} (${limitOf(listed[kind][name])}): ${ADVICE[kind]}`),
      ...(isLower ? [`${kind}: the list says more than there is: npm run ratchets writes what is left`] : []),
    ];
  });
}

function limitOf(listed: number | undefined): string {
  return listed === undefined ? "not in the list" : `${listed} in the list`;
}

/** The list as far as it is still needed. It never grows. */
export function lowered(measured: Measured, listed: Measured): Measured {
  const of = (kind: keyof Measured): Readonly<Record<string, number>> =>
    Object.fromEntries(
      Object.entries(listed[kind])
        .map(([name, size]) => [name, Math.min(size, measured[kind][name] ?? 0)] as const)
        .filter(([, size]) => size > 0),
    );
  return {
    functions: of("functions"),
    classes: of("classes"),
    files: of("files"),
    readmes: of("readmes"),
    comments: of("comments"),
    loops: of("loops"),
  };
}
