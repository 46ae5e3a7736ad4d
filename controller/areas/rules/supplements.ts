import { createHash } from "node:crypto";

/** What a rule uses besides its text: pinned with it, so that a batch that is repeated is parsed the same way. */
export interface Supplements {
  /** Users' grok patterns by name, those that the rule's expressions reach. */
  readonly patterns: Readonly<Record<string, string>>;
  /** The rule's extension table as LTSV text, where the rule looks something up; absent: it looks up nothing. */
  readonly extension?: string;
}

export const NO_SUPPLEMENTS: Supplements = { patterns: {} };

export function isSupplemented({ patterns, extension }: Supplements): boolean {
  return Object.keys(patterns).length > 0 || extension !== undefined;
}

/** SHA-256 of all that decides how a rule parses; of the text alone where it uses nothing else. */
export function digestOf(text: string, supplements: Supplements): string {
  return createHash("sha256")
    .update(isSupplemented(supplements) ? canonical(text, supplements) : text)
    .digest("hex");
}

function canonical(text: string, { patterns, extension }: Supplements): string {
  const sorted = Object.entries(patterns).sort(([one], [other]) => (one < other ? -1 : 1));
  return JSON.stringify([text, sorted, extension ?? null]);
}
