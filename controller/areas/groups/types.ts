/** Rights that a group gives to its members, as an administrator writes them. */
export interface GroupRights {
  /** Class paths of the trees whose objects members read. */
  readonly readonly: readonly string[];
  /** Class paths of the trees whose objects members read and write. */
  readonly writable: readonly string[];
  /** `<class path>: <condition>`, or a condition for every class that has its fields. */
  readonly readexps: readonly string[];
  /** By class path: columns with commas, `-name` for a hidden one, `*` for all. */
  readonly fields: Readonly<Record<string, string>>;
}

/** A group as others see it. */
export interface Group extends GroupRights {
  /** A decimal number. */
  readonly id: string;
  readonly name: string;
  /** Names of the groups above and its own, each after a slash. */
  readonly fullname: string;
  /** Full name of the group above; empty: none. A group does not inherit its rights. */
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

/** Absent members stay as they are. */
export interface GroupEdit extends GroupContent {
  /** Absent: the group of that name and parent. */
  readonly id?: string;
  readonly name?: string;
}

/** Opens paths of scripts and files to groups. */
export interface ApiPermission {
  readonly name: string;
  /** Folders, each with everything below it, and files. */
  readonly paths: readonly string[];
  /** Full names, in byte order. */
  readonly groups: readonly string[];
}

/** A stored group. It names other groups by their ids, so that they can be renamed. */
export interface GroupRecord extends GroupRights {
  readonly id: string;
  readonly name: string;
  /** Id of the group above; empty: none. */
  readonly parent: string;
  /** `U<full name of a user>` or `G<id of a group>`; readers ignore members that no longer exist. */
  readonly member: readonly string[];
  readonly tags: readonly string[];
}

export interface PathRecord {
  readonly name: string;
  readonly paths: readonly string[];
  /** Ids of groups; readers ignore ids that no longer exist. */
  readonly groups: readonly string[];
}
