import { TOTP, Secret } from "otpauth";
import { ALL_FAILED } from "../../controller/http/answer/failed.ts";
import { testPrincipal } from "../helpers/time/runtime.ts";
import type { World } from "../security/world.ts";
import type { Answered } from "./described.ts";
import type { Sent } from "./described-calls.ts";

type Prepared = Pick<Sent, "members" | "filename">;

/** Examples that fail in every part, because no agent is connected. */
const UNREACHED = /^POST \/monitoring\/(?:(?:extagent|zabbix)\/)?(?:deploy|undeploy|start|stop|restart)$/;

/** Codes of the examples that fail in a test world, for what it lacks. */
const FAILURES: Readonly<Record<string, string>> = {
  "POST /agent/enrol": "denied",
  "POST /monitoring/targets/confirm": "not_found",
  "POST /monitoring/policy/preview": "unavailable",
  "POST /files/restore/*": "not_found",
  "DELETE /files/history/*": "not_found",
  "POST /license/import": "unsupported",
  "POST /key/reload": "unsupported",
  "PUT /admin/users/:userid/openid": "unsupported",
  "GET /user/openid": "unsupported",
  "GET /user/openid/callback": "unsupported",
  "POST /user/openid/link": "unsupported",
};

const FILENAMES: Readonly<Record<string, string>> = {
  "POST /mxobject/import": "visits.mql",
  "POST /mxobject/importclass": "visits.xlsx",
  "POST /fs/*": "day.csv",
  "POST /fs/import": "reports.zip",
  "POST /config/import": "etc.json",
  "POST /monitoring/depot": "check.sh",
  "PUT /monitoring/depot": "check.sh",
};

const SIGNS_IN = /\/user\/(login|signin|goauth)$/;
const OWN_PASSWORD = "correct horse battery staple";

/** Gives each example call what it needs in addition to the calls before it: a caller, a file name, made-up ids. */
export class Story {
  readonly #world: World;
  #people = 0;
  #administrator: Promise<string> | undefined;

  constructor(world: World) {
    this.#world = world;
  }

  async before(name: string): Promise<Prepared & Pick<Sent, "headers">> {
    const filename = FILENAMES[name];
    const isOwn = name.includes(" /user/") && !SIGNS_IN.test(name);
    const session = isOwn ? await this.#newcomer() : await (this.#administrator ??= this.#world.signIn());
    const headers = SIGNS_IN.test(name) ? {} : cookieOf(session);
    const members = await this.#membersOf(name, session);
    return { headers, ...(members && { members }), ...(filename !== undefined && { filename }) };
  }

  /** The code with which the example fails in a test world; `undefined` if it succeeds. */
  codeOf(name: string): string | undefined {
    return FAILURES[name];
  }

  /** The part of the answer that is not as expected; `undefined` if there is none. */
  faultOf(name: string, { status, body }: Answered): string | undefined {
    if (UNREACHED.test(name)) return status === ALL_FAILED ? undefined : `${status} ${body}`;
    const code = this.codeOf(name);
    if (code === undefined) return status < 400 ? undefined : `${status} ${body}`;
    return body.includes(`"code":"${code}"`) ? undefined : `${status} instead of ${code}: ${body}`;
  }

  /** The session of a new user, whose password is that of the examples. */
  async #newcomer(): Promise<string> {
    const { users } = this.#world.assembly;
    const username = `ana${++this.#people}`;
    const rights = { grants: ["objects:read"], data: [] };
    await users.create(testPrincipal(), { username, password: OWN_PASSWORD, rights });
    const from = { company: "matrix", remote: "test", traceparent: "" };
    return (await users.signIn({ ...from, username, password: OWN_PASSWORD })).session;
  }

  async #membersOf(name: string, session: string): Promise<Prepared["members"]> {
    const call = (method: "GET" | "POST", url: string, payload?: object) =>
      this.#call({ session, method, url, payload });
    if (name.includes("/admin/users/:userid")) return { userid: await this.#idOf("/ana", call) };
    switch (name) {
      case "POST /mxobject/importclass":
        return { uploadfile: await this.#workbook(session) };
      case "POST /fs/import":
        return { uploadfile: await this.#archive(session) };
      case "GET /job/output/:runid/:host":
      case "GET /job/run/:runid":
      case "POST /job/cancel/:runid":
        return { runid: await call("GET", "/job/exec/backup@nightly") };
      case "POST /job/retry/:runid":
        return { runid: await this.#cancelledRun(session, call) };
      case "GET /monitoring/deployment/:id":
      case "DELETE /monitoring/deployment/:id":
        return call("POST", "/monitoring/deploy", WAITING) as Promise<{ readonly id: string }>;
      case "DELETE /agent/token/:id":
        return { id: ((await call("POST", "/agent/token", {})) as { readonly id: string }).id };
      case "DELETE /user/sessions/:id":
        return { id: ((await call("GET", "/user/sessions")) as readonly { readonly id: string }[])[0]?.id };
      case "DELETE /user/tokens/:id":
        await call("POST", "/user/tokens", { name: "backup", scopes: ["objects:read"] });
        return { id: ((await call("GET", "/user/tokens")) as readonly { readonly id: string }[])[0]?.id };
      case "POST /user/secondfactor/confirm":
      case "POST /user/account/secondfactor/confirm":
        return { code: await codeOf(call) };
      case "POST /user/secondfactor/remove":
      case "POST /user/account/secondfactor/remove":
        await call("POST", "/user/secondfactor/confirm", { code: await codeOf(call) });
        return undefined;
      case "DELETE /mxobject/schema/class":
        await call("POST", "/mxobject/mql", { mql: "delete from /matrix/visit" });
        return undefined;
      default:
        return undefined;
    }
  }

  async #idOf(fullname: string, call: Call): Promise<unknown> {
    return ((await call("GET", `/admin/users?fullname=${fullname}`)) as { readonly id: string }).id;
  }

  async #cancelledRun(session: string, call: Call): Promise<unknown> {
    const runid = String(await call("GET", "/job/exec/backup@nightly"));
    await call("POST", `/job/cancel/${runid}`);
    // Its output is followed until the run is over.
    await this.#world.app.inject({ url: `/job/output/${runid}/web-1`, headers: cookieOf(session) });
    return runid;
  }

  async #workbook(session: string): Promise<Buffer> {
    const url = "/mxobject/export?class=/matrix/visit&filetype=xlsx";
    const answer = await this.#world.app.inject({ url, headers: cookieOf(session) });
    return answer.rawPayload;
  }

  async #archive(session: string): Promise<Buffer> {
    const url = "/fs/export?srcpath=/reports";
    const answer = await this.#world.app.inject({ method: "POST", url, headers: cookieOf(session) });
    return answer.rawPayload;
  }

  /** The message of a call that succeeds. */
  async #call({ session, method, url, payload }: Own): Promise<unknown> {
    const headers = cookieOf(session);
    const answer = await this.#world.app.inject({ method, url, headers, ...(payload && { payload }) });
    const { status, message } = answer.json<{ readonly status: string; readonly message: unknown }>();
    if (status !== "ok") throw new Error(`${method} ${url}: ${String(message)}`);
    return message;
  }
}

function cookieOf(session: string): Sent["headers"] {
  return { cookie: `matrixSession=${session}` };
}

/** A deployment that waits, of the depot of the examples. Its answer has the id. */
const WAITING = { hosts: ["web-1"], depots: ["check"], versions: ["1.0.0"], wait: "1h" };

type Call = (method: "GET" | "POST", url: string, payload?: object) => Promise<unknown>;

interface Own {
  readonly session: string;
  readonly method: "GET" | "POST";
  readonly url: string;
  readonly payload: object | undefined;
}

/** Begins a second factor, and computes its present code. */
async function codeOf(call: Call): Promise<string> {
  const { secret } = (await call("POST", "/user/secondfactor", { password: OWN_PASSWORD })) as {
    readonly secret: string;
  };
  return new TOTP({ secret: Secret.fromBase32(secret) }).generate();
}
