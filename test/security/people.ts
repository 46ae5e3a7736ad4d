import type { InjectOptions } from "fastify";
import type { Endpoint } from "../../controller/http/interface/endpoint.ts";
import { PASSWORD } from "../helpers/http/http-app.ts";
import { testPrincipal } from "../helpers/time/runtime.ts";
import type { World } from "./world.ts";

/** Headers that identify a user. They contain no session, so no call can end it. */
export type Credentials = Readonly<Record<string, string>>;

export function credentialsOf(username: string, company = "matrix"): Credentials {
  return { authorization: `Basic ${Buffer.from(`${company}.${username}:${PASSWORD}`).toString("base64")}` };
}

/** Creates a user without own rights, who is a member of the named groups and of the group that contains every user. */
export async function join(world: World, username: string, ...groups: readonly string[]): Promise<Credentials> {
  await world.assembly.users.create(testPrincipal(), {
    username,
    password: PASSWORD,
    rights: { grants: [], data: [] },
    groups,
  });
  return credentialsOf(username);
}

/** Creates a second tenant, whose administrator manages no others. */
export async function neighbourOf(world: World): Promise<Credentials> {
  const { tenants, users } = world.assembly;
  await tenants.ensureTenant({ name: "second", ospace: "/second" });
  await users.operator.ensureAdministrator({ tenant: "second", username: "admin", password: PASSWORD });
  return credentialsOf("admin", "second");
}

export function nameOf({ method, path }: Pick<Endpoint, "method" | "path">): string {
  return `${method} ${path}`;
}

export type Call = InjectOptions & { readonly url: string };
