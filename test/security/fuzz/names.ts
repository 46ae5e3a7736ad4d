/** Names and values of the data that the fuzzer asks for. Hidden data has a mark, which no call contains. */

/** Selects an entry of a list by a seed. */
export type Draw = <T>(list: readonly T[]) => T;

/** Begins the marks of the first tenant. The rest of a mark says what has it. */
export const MARK = "xmarkx";
/** In data of the other tenant, which every user of the first one must not see. */
export const NEIGHBOUR_MARK = "ymarky";

export type Marked =
  | "row"
  | "past"
  | "column"
  | "both"
  | "shut"
  | "file"
  | "user"
  | "host"
  | "job"
  | "policy"
  | "rule"
  | "config"
  | "context"
  | "log"
  | "table";

/** A word in hidden texts. Calls may contain it, so an answer to it shows whether the caller can find hidden text. */
export const WORD = "whisper";
/** Values of hidden objects that calls may contain. */
export const HIDDEN_SIZE = 7_777;

export const IDS = ["vault:closed", "vault:open", "vault:ajar", "vault:theirs", "shut:a", "ldap:1"] as const;

/** Reading all data costs the most, so it is drawn rarely. */
export const CLASSES: readonly string[] = [
  ...Array.from({ length: 12 }, () => "/matrix/vault"),
  ...Array.from({ length: 4 }, () => "/matrix/shut"),
  ...Array.from({ length: 4 }, () => "/matrix/lines"),
  "/matrix/",
  "/matrix/ldap",
  "/second/vault",
  "/",
];

/** Classes of the platform with marked objects. */
export const PLATFORM_CLASSES = [
  "/matrix/filesystem",
  "/matrix/ldap",
  "/matrix/jobs/jobdef",
  "/matrix/system/hostinfo",
  "/matrix/system/config",
  "/matrix/system/policy",
] as const;

export const CONDITIONS = [
  "code='closed'",
  `code='closed' and size>0`,
  `size=${HIDDEN_SIZE}`,
  `size>1000 and note like '%${WORD}%'`,
  `note like '%${WORD}%'`,
  `note match '${WORD}'`,
  `hushed like '%${WORD}%'`,
  `hushed match '${WORD}'`,
  "hushed is not null",
  "hushed >= 'a'",
  "note like '%'",
  "note match 'x*'",
  "id='vault:closed'",
  "code in ('closed', 'open')",
  "not code='open'",
  "leads.hushed is not null",
  `leads.note like '%${WORD}%'`,
  "leads = 'vault:closed'",
  "length(hushed) > 2",
  "upper(note) like '%WHISPER%'",
  "owner='theirs'",
  "1=1",
] as const;

/** For parameters in the path of an endpoint. */
export const NAMES: readonly string[] = [
  ...["vault", "closed", "open", "admin", "second", "matrix", "common", "rule", "1", "vault@d", "notes/plan.txt"],
  ...["covert", "covert@d", "matrix/covert/key", "shut"],
  ...IDS,
  "1000000000000000000",
];

/** Names that most marked objects have. */
export const OBJECTS = ["covert", "covert@d", "vault"] as const;
/** Files, for paths below `/fs/`. */
export const FILES = ["notes/plan.txt", "notes", "script/query.js", "open/plain.txt", "open"] as const;

/** For other members of a call. */
export const TEXTS: readonly string[] = [
  ...NAMES,
  ...["/", "/matrix", "/matrix/vault", "/matrix/shut", "/matrix/ldap", "/matrix/system/hostinfo"],
  ...["/second", "/second/vault", "/matrix/filesystem", "/matrix/rules/vault", "/matrix/rules/shut"],
  ...["/matrix/covert", "/matrix/covert/key", "/notes", "/notes/plan.txt", "/said.js", WORD],
  ...CONDITIONS,
];

/**
 * A word of a hidden object and one of the same length that nothing has. A call with the one must be answered like the
 * same call with the other.
 */
export type Twin = readonly [hidden: string, missing: string];

export const TWINS = {
  row: [
    ["closed", "clased"],
    [WORD, "whispes"],
    ["WHISPER", "WHISPES"],
    [String(HIDDEN_SIZE), "7779"],
  ],
  column: [["hushed", "hushad"]],
  shut: [["shut", "shot"]],
  ruled: [["covert", "covart"]],
  file: [
    ["plan.txt", "plon.txt"],
    ["/notes", "/nates"],
  ],
  second: [
    ["theirs", "thears"],
    ["/second", "/secand"],
  ],
  matrix: [["/matrix", "/matrox"]],
} as const satisfies Readonly<Record<string, readonly Twin[]>>;
