import { Type } from "typebox";
import { PLAIN_TEXT, SOME, TAG_PATH, TAG_PATH_OR_EMPTY } from "./documented.ts";

/** Schemas of `/tagdir` and of tags on objects. */

const Domain = Type.String({ description: "Tree of tags; it need not be made", documented: PLAIN_TEXT });
const TagPath = Type.String({ description: "Whole path of a tag, as in `a/b/c`", documented: TAG_PATH });
const System = Type.Optional(Type.Boolean({ description: "Without effect: all users of the tenant share its trees" }));

export const TagTreeGet = Type.Object({
  domain: Domain,
  tagpath: Type.Optional(Type.String({ description: "Only what lies below this tag", documented: TAG_PATH_OR_EMPTY })),
  system: System,
});

export const TagNamed = Type.Object({ domain: Domain, tagpath: TagPath, system: System });

export const TagMove = Type.Object({
  domain: Domain,
  tagpath: TagPath,
  topath: Type.String({ description: "The whole new path", documented: TAG_PATH }),
  system: System,
});

export const TaggingInput = Type.Object({
  domain: Domain,
  tag: Type.Array(TagPath, { documented: SOME }),
  id: Type.Array(Type.String({ description: "Whole id of an object, as in `hostinfo:web-1`" }), { documented: SOME }),
  system: System,
});

/** A node of a tree; the root has an empty name. */
export const TagTree = Type.Object({
  name: Type.String({ description: "Last part of the path" }),
  nodes: Type.Array(Type.Record(Type.String(), Type.Unknown()), {
    description: "By name; nodes of this same form, which have `path` and `domain` besides",
  }),
});
