import { Type } from "typebox";
import { ABSOLUTE_PATH, CLASS_TREE, GROUP_NAME, NOT_EMPTY, oneOfMembers, PLAIN_TEXT, SOME } from "./documented.ts";
import { Revision } from "./revision.ts";

/** Schemas of `/admin/perms`. */

const Texts = (description: string) => Type.Array(Type.String(), { description });

const Trees = (description: string) => Type.Array(Type.String({ documented: CLASS_TREE }), { description });
const Members = (description: string) =>
  Type.Array(Type.String({ documented: { pattern: "^[UG]/.+$" } }), { description });

const groupMembers = {
  parent: Type.Optional(Type.String({ description: "Full name of the group whose name it continues; empty: none" })),
  member: Type.Optional(Members("U and the full name of a user, or G and the full name of a group")),
  readonly: Type.Optional(Trees("Class paths: members read the objects of these trees")),
  writable: Type.Optional(Trees("Class paths: members read and write the objects of these trees")),
  readexps: Type.Optional(
    Texts("<class path>: <condition>, the rows of that tree which members see; without a path for every class"),
  ),
  fields: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      documented: { propertyNames: CLASS_TREE },
      description: "Class path: the columns that members see, with commas; -name is hidden, * is all",
    }),
  ),
  tags: Type.Optional(Texts("Labels of the group")),
};

export const GroupCreate = Type.Object({
  name: Type.String({ minLength: 1, documented: GROUP_NAME }),
  ...groupMembers,
});

export const GroupChange = Type.Object(
  {
    id: Type.Optional(
      Type.String({ description: "Absent: the group that name and parent say", documented: NOT_EMPTY }),
    ),
    name: Type.Optional(Type.String({ minLength: 1, documented: GROUP_NAME })),
    ...groupMembers,
  },
  { documented: oneOfMembers(["id"], ["name"]) },
);

export const GroupId = Type.Object({ id: Type.String() });

export const GroupList = Type.Object({
  parent: Type.Optional(Type.String({ description: "Full name of a group; empty: those without one" })),
});

export const GroupReply = Type.Object({
  id: Type.String(),
  name: Type.String(),
  fullname: Type.String(),
  parent: Type.String(),
  member: Type.Array(Type.String()),
  fields: Type.Record(Type.String(), Type.String()),
  readexps: Type.Array(Type.String()),
  readonly: Type.Array(Type.String()),
  writable: Type.Array(Type.String()),
  tags: Type.Array(Type.String()),
  isParent: Type.Boolean(),
  isldap: Type.Boolean(),
  revision: Revision,
});

export const GroupReplies = Type.Array(GroupReply);

const Paths = Type.Array(Type.String({ documented: { pattern: `^/$|${ABSOLUTE_PATH.pattern}` } }), {
  description: "Folders, each with all below it, and files",
  documented: SOME,
});

const Name = Type.String({ documented: PLAIN_TEXT });

export const ApiName = Type.Object({ name: Name });

export const ApiCreate = Type.Object({ name: Type.String({ minLength: 1, documented: PLAIN_TEXT }), path: Paths });

export const ApiPaths = Type.Object({ name: Name, path: Paths });

export const ApiGroups = Type.Object({
  name: Name,
  group: Type.Array(Type.String({ documented: NOT_EMPTY }), { description: "Full names of groups", documented: SOME }),
});

export const ApiReply = Type.Object({
  name: Type.String(),
  pprefix: Type.Array(Type.String()),
  _group: Type.Object({ _all: Type.Array(Type.String()) }),
  revision: Revision,
});

export const ApiReplies = Type.Array(ApiReply);

export const Explain = Type.Object({
  user: Type.Optional(Type.String({ description: "Name of a user; absent: the caller" })),
  class: Type.Optional(Type.String({ description: "A class path" })),
  path: Type.Optional(Type.String({ description: "A path of a script or a file", documented: ABSOLUTE_PATH })),
  endpoint: Type.Optional(Type.String({ description: "Method and path, such as GET /host" })),
  write: Type.Optional(Type.Boolean({ description: "Of a class: whether objects may be written; read otherwise" })),
});

export const ExplainReply = Type.Object({
  user: Type.String(),
  groups: Type.Array(Type.String()),
  allowed: Type.Boolean(),
  why: Type.Array(Type.String()),
  who: Type.Array(Type.Object({ group: Type.String(), how: Type.String(), member: Type.Array(Type.String()) })),
});
