import { Type } from "typebox";
import { CONFIG_TTL_MAX_SECONDS } from "../limits.ts";
import { CONFIG_FOLDER, CONFIG_KEY, ENCODING } from "./documented.ts";

/** Schemas of `/config`. */

const KEY = "A key such as /matrix/etc/mail";
const Key = Type.String({ minLength: 1, description: KEY, documented: CONFIG_KEY });
const Flag = (description: string) => Type.Optional(Type.Boolean({ description }));

export const ConfigGetInput = Type.Object({
  key: Type.String({ minLength: 1, description: `${KEY}, or / for all`, documented: CONFIG_FOLDER }),
  cached: Flag("The answer may be as old as two seconds, and comes sooner; without it, it is what was written last"),
});

export const ConfigEntryKey = Type.Object({ key: Key });

/** A node of the tree, in the shape of etcd's: an entry, a directory, or both. */
export interface ConfigNode {
  key: string;
  value?: string;
  /** True if the value is secret; `value` is then its mask. */
  secret?: boolean;
  /** Remaining lifetime in seconds. */
  ttl?: number;
  dir?: boolean;
  nodes?: ConfigNode[];
}

export const ConfigNodeReply = Type.Unsafe<ConfigNode>(
  Type.Object({
    key: Type.String({ description: "Key of the entry or directory" }),
    value: Type.Optional(Type.String({ description: "Of an entry; ******** stands for a secret" })),
    secret: Flag("The value is secret"),
    ttl: Type.Optional(Type.Integer({ description: "Seconds that are left" })),
    dir: Flag("There are nodes below"),
    nodes: Type.Optional(
      Type.Array(Type.Record(Type.String(), Type.Unknown()), { description: "Nodes of this same form" }),
    ),
  }),
);

export const ConfigSet = Type.Object({
  key: Key,
  value: Type.String({ description: "******** keeps the secret that is there" }),
  ttl: Type.Optional(
    Type.Integer({
      description: "Seconds; 0, -1 or none: it does not expire",
      documented: { minimum: -1, maximum: CONFIG_TTL_MAX_SECONDS },
    }),
  ),
  secret: Flag("Whether the value is sealed and never shown again; when absent, as the one that is there"),
});

export const ConfigListInput = Type.Object({
  key: Type.Optional(Type.String({ description: `${KEY}; everything when absent`, documented: CONFIG_FOLDER })),
  after: Type.Optional(Type.String({ description: "The member next of the answer's meta: the page behind it" })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, description: "Entries in a page; 200 when absent" })),
});

const Shown = {
  value: Type.Optional(
    Type.String({
      description: "Value of the entry; ******** stands for a secret. Absent after a delete, and if a rule hides it",
    }),
  ),
  secret: Type.Optional(Type.Boolean({ description: "True: the value is sealed and never shown" })),
  author: Type.Optional(Type.String({ description: "User who wrote this version" })),
  changed: Type.Optional(Type.Integer({ description: "Milliseconds since 1970" })),
  expires: Type.Optional(Type.Integer({ description: "Milliseconds since 1970" })),
};

export const ConfigListReply = Type.Array(
  Type.Object({
    key: Type.String({ description: "Key of the entry" }),
    version: Type.Optional(Type.Integer({ description: "Counts the changes of the key, deletes among them" })),
    ...Shown,
  }),
);

export const ConfigExportInput = Type.Object({
  key: Type.Optional(Type.String({ description: `${KEY}; everything when absent`, documented: CONFIG_FOLDER })),
  relative: Flag("Keys are written relative to the given one, so that they can be imported elsewhere"),
});

/** The file of an export. */
export const ConfigFile = Type.Array(
  Type.Object({
    key: Type.String({ description: "Key of the entry" }),
    value: Type.String({ description: "******** stands for a secret" }),
    secret: Flag("The value is secret"),
    expires: Type.Optional(Type.String({ description: "ISO 8601, in UTC" })),
  }),
);

export const ConfigImportInput = Type.Object({
  key: Type.Optional(
    Type.String({
      description:
        "What relative keys of the file are relative to; whole ones outside it are placed below it, in place of their longest common folder",
      documented: CONFIG_KEY,
    }),
  ),
  plan: Flag("Only tells what would be done"),
  encoding: Type.Optional(
    Type.String({ description: "Encoding of the file, such as gbk; UTF-8 when absent", documented: ENCODING }),
  ),
});

export const ConfigImportReply = Type.Object({
  total: Type.Integer({ description: "Entries of the file" }),
  created: Type.Integer({ description: "Entries that are new" }),
  updated: Type.Integer({ description: "Entries that have another value now" }),
  unchanged: Type.Integer({ description: "Entries that had this value already" }),
  skipped: Type.Integer({ description: "Told in the warnings" }),
  changes: Type.Optional(
    Type.Array(
      Type.Object({
        key: Type.String({ description: "Key of the entry" }),
        action: Type.String({ description: "create, update, unchanged or skip" }),
      }),
      { description: "Of a plan: the first thousand" },
    ),
  ),
});

const Version = Type.Object(
  {
    version: Type.Integer({ description: "Counts the changes of the key, deletes among them" }),
    deleted: Type.Optional(Type.Boolean({ description: "True: this change removed the key" })),
    ...Shown,
  },
  { description: "A version of an entry" },
);

export const ConfigHistoryReply = Type.Array(Version, { description: "The latest first" });

export const ConfigDiffInput = Type.Object({
  key: Key,
  from: Type.Integer({ minimum: 0, description: "A version; 0: from nothing" }),
  to: Type.Integer({ minimum: 1, description: "A version" }),
});

export const ConfigDiffReply = Type.Object({
  from: Type.Optional(Version),
  to: Version,
  patch: Type.String({ description: "A unified difference of the values" }),
});

export const ConfigRollback = Type.Object({
  key: Key,
  version: Type.Integer({ minimum: 1, description: "What the key is to hold again; a delete deletes it" }),
});

export const ConfigWatchInput = Type.Object({
  key: Type.Optional(Type.String({ description: `${KEY}; everything when absent`, documented: CONFIG_FOLDER })),
});

/** A frame of a watch: an entry, a key that is gone, or the mark after all present entries. */
export const ConfigWatchFrame = Type.Union([
  Type.Object({
    key: Type.String({ description: "Key of the entry" }),
    version: Type.Optional(Type.Integer({ description: "Counts the changes of the key, deletes among them" })),
    ...Shown,
  }),
  Type.Object({
    key: Type.String({ description: "Key that is gone" }),
    deleted: Type.Literal(true, { description: "The key is gone" }),
  }),
  Type.Object({
    ready: Type.Literal(true, { description: "All present entries have been sent; later frames are changes" }),
  }),
]);
