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
  name: Type.String({ minLength: 1, documented: GROUP_NAME, description: "Name of the group" }),
  ...groupMembers,
});

export const GroupChange = Type.Object(
  {
    id: Type.Optional(
      Type.String({ description: "Absent: the group that name and parent say", documented: NOT_EMPTY }),
    ),
    name: Type.Optional(Type.String({ minLength: 1, documented: GROUP_NAME, description: "Name of the group" })),
    ...groupMembers,
  },
  { documented: oneOfMembers(["id"], ["name"]) },
);

export const GroupId = Type.Object({ id: Type.String({ description: "Id of the group" }) });

export const GroupList = Type.Object({
  parent: Type.Optional(Type.String({ description: "Full name of a group; empty: those without one" })),
});

export const GroupReply = Type.Object({
  id: Type.String({ description: "Id of the group" }),
  name: Type.String({ description: "Name of the group, without those above it" }),
  fullname: Type.String({ description: "Name with those of the groups above it" }),
  parent: Type.String({ description: "Full name of the group whose name it continues; empty: none" }),
  member: Type.Array(Type.String(), {
    description: "U and the full name of a user, or G and the full name of a group",
  }),
  fields: Type.Record(Type.String(), Type.String(), { description: "Class path: the columns that members see" }),
  readexps: Type.Array(Type.String(), { description: "The rows of a tree that members see" }),
  readonly: Type.Array(Type.String(), { description: "Class paths: members read the objects of these trees" }),
  writable: Type.Array(Type.String(), {
    description: "Class paths: members read and write the objects of these trees",
  }),
  tags: Type.Array(Type.String(), { description: "Labels of the group" }),
  isParent: Type.Boolean({ description: "True: names of other groups continue its name" }),
  isldap: Type.Boolean({ description: "Always false" }),
  revision: Revision,
});

export const GroupReplies = Type.Array(GroupReply);

const Paths = Type.Array(Type.String({ documented: { pattern: `^/$|${ABSOLUTE_PATH.pattern}` } }), {
  description: "Folders, each with all below it, and files",
  documented: SOME,
});

const Name = Type.String({ documented: PLAIN_TEXT, description: "Name of the API permission" });

export const ApiName = Type.Object({ name: Name });

export const ApiCreate = Type.Object({
  name: Type.String({ minLength: 1, documented: PLAIN_TEXT, description: "Name of the API permission" }),
  path: Paths,
});

export const ApiPaths = Type.Object({ name: Name, path: Paths });

export const ApiGroups = Type.Object({
  name: Name,
  group: Type.Array(Type.String({ documented: NOT_EMPTY }), { description: "Full names of groups", documented: SOME }),
});

export const ApiReply = Type.Object({
  name: Type.String({ description: "Name of the API permission" }),
  pprefix: Type.Array(Type.String(), { description: "Folders, each with all below it, and files" }),
  _group: Type.Object(
    { _all: Type.Array(Type.String(), { description: "Full names of groups" }) },
    { description: "Groups with the permission" },
  ),
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
  user: Type.String({ description: "Name of the user" }),
  groups: Type.Array(Type.String(), { description: "Full names of the user's groups, nested ones included" }),
  allowed: Type.Boolean({ description: "True: the user may do it" }),
  why: Type.Array(Type.String(), { description: "Reasons, in words" }),
  who: Type.Array(
    Type.Object({
      group: Type.String({ description: "Full name of the group" }),
      how: Type.String({ description: "Its right, in words" }),
      member: Type.Array(Type.String(), { description: "Some users of the group: those whom the caller may see" }),
    }),
    { description: "Groups that give the right" },
  ),
});
