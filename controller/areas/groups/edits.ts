import { AppError } from "../../../common/errors.ts";
import { GROUP_NAME_MAX_BYTES } from "../../../common/limits.ts";
import { checkName } from "../../../common/names.ts";
import { suggestion } from "../../../common/text/nearest.ts";
import type { Runtime } from "../../runtime.ts";
import { BUILT_IN_GROUPS, FILLED_BY_THEMSELVES } from "./builtin.ts";
import { rulesOf } from "./compile.ts";
import type { Definitions, MemberSight } from "./definitions.ts";
import type { GroupEdit, GroupRecord } from "./types.ts";

const NAME = { what: "name of a group", maxBytes: GROUP_NAME_MAX_BYTES, limit: "GROUP_NAME_MAX_BYTES" };
/** Number of different ids per millisecond. */
const ID_STEPS = 1_000_000;
const EMPTY = { parent: "", member: [], readonly: [], writable: [], readexps: [], fields: {}, tags: [] };

/** The group of that full name; `AppError("not_found")` if there is none. */
export function groupIn(definitions: Definitions, fullname: string): GroupRecord {
  const group = definitions.named(fullname);
  if (group === undefined)
    throw new AppError("not_found", `There is no group ${fullname}${meantGroup(definitions, fullname)}`);
  return group;
}

/** `AppError("invalid")` for a name in a user's `grpset` that is neither id nor full name of a group. */
export function requireGroupNames(definitions: Definitions, names: readonly string[]): void {
  for (const name of names) {
    if (definitions.get(name) !== undefined || definitions.named(name) !== undefined) continue;
    throw new AppError("invalid", `grpset: there is no group ${name}${meantGroup(definitions, name)}`);
  }
}

/**
 * The end of the error text, with a similar group name. A long name is not a typing mistake and slow to compare, so it
 * gets no suggestion.
 */
function meantGroup(definitions: Definitions, name: string): string {
  if (name.length > GROUP_NAME_MAX_BYTES) return ".";
  return suggestion(
    name,
    definitions.stored.groups.map(({ id }) => definitions.fullname(id)),
  );
}

/**
 * The record of the group `id` after the edit, or of a new group. Refuses taken names, unknown member groups, cycles of
 * members or names, and rights that do not parse.
 */
export function edited(definitions: Definitions, id: string, edit: GroupEdit): GroupRecord {
  const before = definitions.get(id);
  const { name = before?.name ?? "", readonly, writable, readexps, fields, tags } = edit;
  const record: GroupRecord = {
    ...(before ?? EMPTY),
    ...(readonly && { readonly }),
    ...(writable && { writable }),
    ...(readexps && { readexps }),
    ...(fields && { fields }),
    ...(tags && { tags }),
    ...(edit.member && { member: membersOf(definitions, id, edit.member) }),
    id,
    name,
    parent: parentOf(definitions, edit.parent, before),
  };
  checkPlace(definitions, record, before);
  // Compile the rights now, so that invalid rights are refused before they are stored.
  rulesOf(id, record);
  return record;
}

/**
 * Adds the members that the caller cannot see to the edit. The caller did not send them, but cannot have meant to
 * remove them.
 */
export function withUnseen(before: GroupRecord | undefined, edit: GroupEdit, sees: MemberSight): GroupEdit {
  if (edit.member === undefined) return edit;
  const unseen = (before?.member ?? []).filter((member) => !sees(member));
  return { ...edit, member: [...edit.member, ...unseen] };
}

/** A new id: a decimal number that no group has. */
export function freeId(definitions: Definitions, { clock, random }: Pick<Runtime, "clock" | "random">): string {
  let id = BigInt(Math.floor(clock.nowMs())) * BigInt(ID_STEPS) + BigInt(Math.floor(random.next() * ID_STEPS));
  while (definitions.get(String(id)) !== undefined) id++;
  return String(id);
}

/** `AppError("too_large")` if there are already `max` records. `limit` is the name of the constant. */
export function checkCount(records: readonly unknown[], max: number, limit: string): void {
  if (records.length < max) return;
  throw new AppError("too_large", `There are ${max} of them already.`, { details: { limit } });
}

/**
 * The group with that id or full name. `AppError("not_found")` if there is none, `AppError("invalid")` for a built-in
 * group, `AppError("conflict")` for a group with groups below it.
 */
export function removable(definitions: Definitions, id: string): GroupRecord {
  const group = definitions.get(id) ?? groupIn(definitions, id);
  const { fullname, hasChildren } = definitions.view(group);
  if (BUILT_IN_GROUPS.some((one) => one.id === group.id))
    throw new AppError("invalid", `The group ${fullname} is built in and cannot be deleted.`);
  if (hasChildren) throw new AppError("conflict", `There are groups below ${fullname}: delete or move them first.`);
  return group;
}

/** The groups that have the user as a direct member. */
export function groupsNaming(groups: readonly GroupRecord[], username: string): readonly GroupRecord[] {
  return groups.filter(({ member }) => member.some((one) => isUser(one, username)));
}

export function withoutUser(group: GroupRecord, username: string): GroupRecord {
  return { ...group, member: group.member.filter((member) => !isUser(member, username)) };
}

function isUser(member: string, username: string): boolean {
  return member.startsWith("U") && member.endsWith(`/${username}`);
}

function parentOf(definitions: Definitions, parent: string | undefined, before: GroupRecord | undefined): string {
  if (parent === undefined) return before?.parent ?? "";
  return parent === "" || parent === "/" ? "" : groupIn(definitions, parent).id;
}

function checkPlace(definitions: Definitions, record: GroupRecord, before: GroupRecord | undefined): void {
  const { id, name, parent } = record;
  checkName(name, NAME);
  if (name.includes("/") || name.trim() !== name)
    throw new AppError("invalid", `${JSON.stringify(name)} is no name of a group: no slash, no space at its ends.`);
  const isMoved = before !== undefined && (before.name !== name || before.parent !== parent);
  if (isMoved && BUILT_IN_GROUPS.some((one) => one.id === id))
    throw new AppError("invalid", `The group /${before.name} is built in and keeps its name.`);
  for (let above = parent; above !== ""; above = definitions.get(above)?.parent ?? "") {
    if (above === id) throw new AppError("invalid", `${definitions.fullname(id)} cannot lie below itself.`);
  }
  const taken = definitions.stored.groups.find((one) => one.name === name && one.parent === parent && one.id !== id);
  if (taken) throw new AppError("conflict", `There is already a group ${definitions.fullname(taken.id)}.`);
}

function membersOf(definitions: Definitions, id: string, members: readonly string[]): readonly string[] {
  if (FILLED_BY_THEMSELVES.has(id) && members.length > 0)
    throw new AppError("invalid", `The members of ${definitions.fullname(id)} come by themselves.`);
  return [...new Set(members.map((member) => memberOf(definitions, id, member.trim())))];
}

function memberOf(definitions: Definitions, id: string, member: string): string {
  if (/^U\/[^\p{C}]+$/u.test(member)) return member;
  if (!member.startsWith("G/"))
    throw new AppError("invalid", `member: ${JSON.stringify(member.slice(0, 200))} is neither U/<user> nor G/<group>.`);
  const group = groupIn(definitions, member.slice(1));
  if (definitions.below(group.id).has(id))
    throw new AppError("invalid", `member: ${member} would make the group a member of itself.`);
  return `G${group.id}`;
}
