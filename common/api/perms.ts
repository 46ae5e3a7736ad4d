import { Type } from "typebox";
import { SOME } from "./documented.ts";
import { Revision } from "./revision.ts";

/** Schemas of `/admin/perms`. */

const Texts = (description: string) => Type.Array(Type.String(), { description });

const groupMembers = {
  parent: Type.Optional(Type.String({ description: "Full name of the group whose name it continues; empty: none" })),
  member: Type.Optional(Texts("U and the full name of a user, or G and the full name of a group")),
  readonly: Type.Optional(Texts("Class paths: members read the objects of these trees")),
  writable: Type.Optional(Texts("Class paths: members read and write the objects of these trees")),
  readexps: Type.Optional(
    Texts("<class path>: <condition>, the rows of that tree which members see; without a path for every class"),
  ),
  fields: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      description: "Class path: the columns that members see, with commas; -name is hidden, * is all",
    }),
  ),
  tags: Type.Optional(Texts("Labels of the group")),
};

export const GroupCreate = Type.Object({ name: Type.String({ minLength: 1 }), ...groupMembers });

export const GroupChange = Type.Object(
  {
    id: Type.Optional(Type.String({ description: "Absent: the group that name and parent say" })),
    name: Type.Optional(Type.String({ minLength: 1 })),
    ...groupMembers,
  },
  { documented: { anyOf: [{ required: ["id"] }, { required: ["name"] }] } },
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

const Paths = Type.Array(Type.String(), {
  description: "Folders, each with all below it, and files",
  documented: SOME,
});

export const ApiName = Type.Object({ name: Type.String() });

export const ApiCreate = Type.Object({ name: Type.String({ minLength: 1 }), path: Paths });

export const ApiPaths = Type.Object({ name: Type.String(), path: Paths });

export const ApiGroups = Type.Object({
  name: Type.String(),
  group: Type.Array(Type.String(), { description: "Full names of groups", documented: SOME }),
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
  path: Type.Optional(Type.String({ description: "A path of a script or a file" })),
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
