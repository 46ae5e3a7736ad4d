import type { Stamped } from "../../../common/revisions.ts";

/** Rights that a group gives to its members, as an administrator writes them. */
export interface GroupRights {
  /** Class paths of the trees whose objects members read. */
  readonly readonly: readonly string[];
  /** Class paths of the trees whose objects members read and write. */
  readonly writable: readonly string[];
  /** `<class path>: <condition>`, or a condition for every class that has its fields. */
  readonly readexps: readonly string[];
  /** By class path: names of columns, separated by commas; `-name` for a hidden column, `*` for all columns. */
  readonly fields: Readonly<Record<string, string>>;
}

/** A group as callers see it. */
export interface Group extends GroupRights {
  readonly revision: string;
  /** A decimal number. */
  readonly id: string;
  readonly name: string;
  /** The names of all groups above it and its own name, each after a slash. */
  readonly fullname: string;
  /** Full name of the group above; empty: none. A group does not inherit rights from the group above. */
  readonly parent: string;
  /** `U<full name of a user>` or `G<full name of a group>`. */
  readonly member: readonly string[];
  readonly tags: readonly string[];
  readonly hasChildren: boolean;
}

export interface GroupContent extends Partial<GroupRights> {
  readonly parent?: string;
  readonly member?: readonly string[];
  readonly tags?: readonly string[];
}

export interface NewGroup extends GroupContent {
  readonly name: string;
}

/** A change of a group; absent members stay unchanged. */
export interface GroupEdit extends GroupContent {
  /** Absent: the group is found by `name` and `parent`. */
  readonly id?: string;
  readonly name?: string;
}

/** Opens paths of scripts and files to groups. */
export interface ApiPermission {
  readonly revision: string;
  readonly name: string;
  /** Paths of files, and of folders with everything below them. */
  readonly paths: readonly string[];
  /** Full names of groups, in byte order. */
  readonly groups: readonly string[];
}

/** A stored group. It refers to other groups by their ids, so that they can be renamed. */
export interface GroupRecord extends GroupRights, Stamped {
  readonly id: string;
  readonly name: string;
  /** Id of the group above; empty: none. */
  readonly parent: string;
  /** `U<full name of a user>` or `G<id of a group>`; readers ignore members that no longer exist. */
  readonly member: readonly string[];
  readonly tags: readonly string[];
}

export interface PathRecord extends Stamped {
  readonly name: string;
  readonly paths: readonly string[];
  /** Ids of groups; readers ignore ids that no longer exist. */
  readonly groups: readonly string[];
}
