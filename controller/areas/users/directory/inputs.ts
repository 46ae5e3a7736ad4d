import type { Static } from "typebox";
import type { UserCreateInput, UserUpdateInput } from "../../../../common/api/users.ts";
import { revisionOf, type Expected, type Revised } from "../../../../common/revisions.ts";
import { isAdministrators } from "../../groups/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { requireTimeZone } from "./details.ts";
import type { UserDirectory } from "./directory.ts";
import { ignoredMembers } from "./organization-changes.ts";
import { NO_RIGHTS } from "../rights/effective-rights.ts";
import type { Details } from "../types.ts";

type Input = Static<typeof UserCreateInput>;

interface CreatedNode extends Revised {
  readonly id: string;
}

/** Creates a user or an organisation from a client's input. */
export async function createNode(
  directory: UserDirectory,
  principal: Principal,
  input: Input,
  expected?: Expected,
): Promise<CreatedNode> {
  const { username, parent, otype, passwd = "", grpset = [], isadmin = false, isactive = true } = input;
  const common = { username, parent, details: detailsOf(input), active: isactive };
  requireTimeZone(common.details.config);
  if (otype === "usr") {
    const rights = isadmin ? ({ role: "administrator" } as const) : NO_RIGHTS;
    const user = { ...common, password: passwd, rights, groups: grpset };
    const made = await directory.create(principal, user, expected);
    return { id: made.id, revision: revisionOf(made), warnings: groupWarnings(input) };
  }
  const { details } = common;
  const warnings = ignoredMembers({ password: passwd, groups: grpset, isAdmin: isadmin, details });
  return { ...(await directory.createOrganization(principal, common, expected)), warnings };
}

/**
 * Changes the members that a client sends. Warns, for example of work that continues with rights the user loses.
 */
export async function changeUser(
  directory: UserDirectory,
  principal: Principal,
  input: Static<typeof UserUpdateInput>,
  expected?: Expected,
): Promise<Revised> {
  const change = {
    details: detailsOf(input),
    ...(input.passwd !== undefined && input.passwd !== "" && { password: input.passwd }),
    ...(input.password !== undefined && { presentPassword: input.password }),
    ...(input.grpset !== undefined && { groups: input.grpset }),
    ...(input.isadmin !== undefined && { isAdmin: input.isadmin }),
    ...(input.isactive !== undefined && { active: input.isactive }),
  };
  const { revision, warnings } = await directory.change(principal, input.userid, change, expected);
  return { revision, warnings: [...groupWarnings(input), ...warnings] };
}

function groupWarnings({ grpset = [], isadmin }: Pick<Partial<Input>, "grpset" | "isadmin">): readonly string[] {
  if (isadmin === true || !grpset.some(isAdministrators)) return [];
  return ["grpset: being in /administrators has no effect: isadmin makes a user an administrator."];
}

/** The details that the client sent. */
function detailsOf(input: Partial<Input>): Partial<Details> {
  const { auth, lastname, firstname, gender, address, email, mobile, telephone, remark, status, config } = input;
  const imaccount = input.imaccount ?? input.wechat;
  const names = { auth, lastname, firstname, gender, address, imaccount, remark };
  const given = { ...names, email, mobile, telephone, status, config };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Partial<Details>;
}
