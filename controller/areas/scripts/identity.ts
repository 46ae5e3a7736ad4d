import type { Value } from "../../../common/value.ts";
import type { Principal } from "../permissions/index.ts";
import type { Tenants } from "../tenants/index.ts";
import type { DirectoryReader } from "../users/index.ts";

interface Dependencies {
  readonly directory: Pick<DirectoryReader, "self">;
  readonly tenants: Pick<Tenants, "get">;
}

/** The identity object that clients read at start-up. The platform itself has only a name and a company. */
export async function identityOf({ directory, tenants }: Dependencies, principal: Principal): Promise<Value> {
  const [node, tenant] = await Promise.all([directory.self(principal), tenants.get(principal.tenant)]);
  const user = { ...(node ?? { username: principal.user, isadmin: false }), nodes: [] };
  const { name = principal.tenant, fullname = name, title = name, web = "", config = {} } = tenant ?? {};
  const company = { name, fullname, ospace: principal.ospace, title, web, logo: "", icon: "", license: "" };
  return { ...(user as { readonly [member: string]: Value }), Company: { ...company, ...config } };
}
