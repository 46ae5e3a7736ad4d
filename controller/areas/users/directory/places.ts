import { AppError } from "../../../../common/errors.ts";
import { USERNAME_MAX_CHARACTERS } from "../../../../common/limits.ts";
import type { Random } from "../../../../common/time.ts";
import { encodeJson } from "../../../store/format.ts";
import type { KvOperation } from "../../../store/kv.ts";
import { USERS, type UserRecord } from "../store.ts";
import { idKey, memberKey, type TreeView } from "./tree-store.ts";
import type { User } from "../types.ts";

// No control characters, no colon (it ends the name in Basic credentials), no slash, no space at the ends.
const NAME = /^(?! )[^\p{C}/:]+(?<! )$/u;
/** The smallest id of 19 digits. */
const ID_BASE = 10n ** 18n;

export function isName(text: string): boolean {
  return text.length <= USERNAME_MAX_CHARACTERS && NAME.test(text) && text !== "." && text !== "..";
}

export function checkName(name: string): void {
  if (isName(name)) return;
  throw new AppError(
    "invalid",
    `${JSON.stringify(name)} is no user name: up to ${String(USERNAME_MAX_CHARACTERS)} characters, none of them / or :.`,
  );
}

export function newNodeId(random: Random): string {
  const drawn = Buffer.from(random.bytes(8)).readBigUInt64BE();
  return String(ID_BASE + 1n + (drawn % (2n ** 64n - ID_BASE - 1n)));
}

export function parentIn({ organizations }: TreeView, text = ""): string {
  const parent = organizations.find(text);
  if (parent === undefined) throw new AppError("not_found", `There is no organisation ${text}.`);
  return parent;
}

export async function requireFree({ kv }: TreeView, key: string, text: string): Promise<void> {
  if ((await kv.get(key)) !== undefined) throw new AppError("conflict", text);
}

export function placing(record: UserRecord): readonly KvOperation[] {
  const { id, username, parent } = record;
  return [
    { kind: "put", key: USERS + username, value: encodeJson(record) },
    { kind: "put", key: idKey(id), value: encodeJson({ username }) },
    { kind: "put", key: memberKey(parent, username), value: encodeJson({ id }) },
  ];
}

export function deletion(key: string): KvOperation {
  return { kind: "delete", key };
}

/** The user without the secret members of the record. */
export function shown(record: UserRecord): User {
  const { tenant, username, id, parent, details, groups, rights, active, home, createdMs, changedMs, stamp } = record;
  const user = { tenant, username, id, parent, details, groups, rights, active, createdMs, changedMs, stamp };
  return home === undefined ? user : { ...user, home };
}

export function noNode(fullname: string): AppError {
  return new AppError("not_found", `There is no user or organisation ${fullname}.`);
}

export function unknownNode(id: string): AppError {
  return new AppError("not_found", `There is no user or organisation with the id ${id}.`);
}

export function tooMany(what: string, limit: string, max: number): AppError {
  return new AppError("too_large", `A tenant has at most ${String(max)} ${what}.`, { details: { limit } });
}
