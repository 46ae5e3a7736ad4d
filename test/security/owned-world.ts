import { afterAll, beforeAll } from "vitest";
import type { DataRule } from "../../controller/areas/permissions/index.ts";
import { PASSWORD } from "../helpers/http/http-app.ts";
import { testPrincipal } from "../helpers/time/runtime.ts";
import { openWorld, type World } from "./world.ts";

/**
 * Jobs, policies, depots and users are objects of the platform's classes. Their own interface must show exactly what a
 * query shows. Rules follow the access to their class.
 */

export const admin = testPrincipal();
export const ALL: DataRule = { class: "/", access: "write" };
const USERS: Readonly<Record<string, readonly DataRule[]>> = {
  rows: [
    ALL,
    ...["jobs/jobdef", "jobs/jobgroup", "system/policy", "system/depot"].map(
      (path): DataRule => ({ class: `/matrix/${path}`, access: "write", where: "name = 'mine'" }),
    ),
  ],
  columns: [
    ALL,
    { class: "/matrix/jobs/jobdef", access: "write", hidden: ["exec", "creator"] },
    { class: "/matrix/jobs/jobgroup", access: "write", hidden: ["hosts"] },
    { class: "/matrix/system/policy", access: "write", hidden: ["command", "hosts"] },
    { class: "/matrix/system/depot", access: "write", hidden: ["remark"] },
  ],
  unseen: [
    ALL,
    { class: "/matrix/jobs", access: "none" },
    { class: "/matrix/system/policy", access: "none" },
    { class: "/matrix/system/depot", access: "none" },
    { class: "/matrix/vault", access: "none" },
  ],
};
const sessions = new Map<string, string>();

interface Answer {
  readonly status: string;
  readonly code?: string;
  readonly message: unknown;
}

export interface Request {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly url: string;
  readonly type?: string;
  readonly payload?: string;
}

/** World of all tests of the calling file. */
export let world: World;

/** Opens the world, with objects of two owners, for all tests of the calling file. */
export function useOwnedRecords(): void {
  // Files share a process, and sessions belong to a world.
  sessions.clear();
  beforeAll(async () => {
    world = await openWorld();
    const { assembly } = world;
    await assembly.query.rows(admin, "create class /matrix/vault (line text); create class /matrix/open (line text)");
    for (const name of ["open", "vault"])
      await assembly.rules.put(admin, `/matrix/rules/${name}`, `--class=/matrix/${name}\n--parser=text\n--fields=line`);
    for (const name of ["mine", "theirs"]) {
      await assembly.jobs.save(admin, { name, dir: "d", exec: ["true"], host: ["h"] });
      await assembly.jobGroups.save(admin, { name, gtype: "group", hosts: [{ host: `host-of-${name}` }] });
      const spec = {
        kind: "command",
        name,
        rule: "/matrix/rules/open",
        command: "secret",
        ctype: 1,
        interval: 1,
        unit: "minute",
      } as const;
      await assembly.policies.save(admin, { spec });
    }
    await upload("admin", "mine");
    await upload("admin", "theirs");
    for (const [username, data] of Object.entries(USERS)) {
      await assembly.users.create(testPrincipal(), {
        username,
        password: PASSWORD,
        rights: { grants: ["*:read", "*:write", "*:run"], data },
      });
    }
  }, 120_000);
  afterAll(() => world[Symbol.asyncDispose]());
}

/** Makes a call as that user, who signs in at the first one. */
export async function call(user: string, { method = "GET", url, type, payload }: Request): Promise<Answer> {
  let session = sessions.get(user);
  if (session === undefined) {
    session = (
      await world.assembly.users.signIn({
        company: "matrix",
        username: user,
        password: PASSWORD,
        remote: "test",
        traceparent: "",
      })
    ).session;
    sessions.set(user, session);
  }
  const whole = `${url}${url.includes("?") ? "&" : "?"}sessionid=${session}`;
  return (
    await world.app.inject({
      method,
      url: whole,
      ...(type && { headers: { "content-type": type }, payload: payload ?? "" }),
    })
  ).json();
}

/** Body in several parts, with a file if there is one. */
export function parts(fields: Readonly<Record<string, string>>, file?: string): Pick<Request, "type" | "payload"> {
  const texts = Object.entries(fields).map(
    ([name, value]) => `--edge\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  );
  const content =
    file === undefined
      ? ""
      : `--edge\r\ncontent-disposition: form-data; name="uploadfile"; filename="a.sh"\r\n\r\n${file}\r\n`;
  return { type: "multipart/form-data; boundary=edge", payload: `${texts.join("")}${content}--edge--\r\n` };
}

/** Uploads a depot. */
async function upload(user: string, name: string, version = "1.0.0"): Promise<Answer> {
  return call(user, {
    method: "POST",
    url: "/monitoring/depot",
    ...parts({ name, version, remark: "secret" }, "echo secret"),
  });
}
