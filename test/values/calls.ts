import { pathToFileURL } from "node:url";
import type { InjectOptions } from "fastify";
import { parseJson } from "../../common/json.ts";
import type { Row, Value } from "../../common/value.ts";
import { bundle } from "../helpers/programs/bundle.ts";
import { multipart } from "../helpers/jobs/monitoring.ts";
import { openWorld, type World } from "../security/world.ts";

export interface Reply {
  readonly isOk: boolean;
  /** Content of a successful answer; whole numbers beyond 2^53 are texts. */
  readonly message: unknown;
  /** Text of the error. */
  readonly error: string;
  readonly meta: { readonly cursor?: string };
  readonly bytes: Buffer;
}

/** A whole controller, called through its HTTP interface. */
export class Caller implements AsyncDisposable {
  readonly world: World;
  readonly runsScripts: boolean;
  readonly #session: string;

  private constructor(world: World, session: string, runsScripts: boolean) {
    this.world = world;
    this.runsScripts = runsScripts;
    this.#session = session;
  }

  static async open({ runsScripts }: Pick<Caller, "runsScripts">): Promise<Caller> {
    const file = runsScripts && (await bundle("controller/script-worker.ts", `values-${process.pid}.mjs`));
    const world = await openWorld(file ? { scripts: pathToFileURL(file) } : {});
    return new Caller(world, await world.signIn(), runsScripts);
  }

  async call(method: "GET" | "POST" | "PUT", url: string, body: InjectOptions = {}): Promise<Reply> {
    const address = `${url}${url.includes("?") ? "&" : "?"}sessionid=${this.#session}`;
    const response = await this.world.app.inject({ method, url: address, ...body });
    const isJson = String(response.headers["content-type"]).startsWith("application/json");
    const envelope = isJson ? (parseJson(response.payload) as Row) : {};
    const isOk = response.statusCode < 400 && (!isJson || envelope["status"] === "ok");
    return {
      isOk,
      message: envelope["message"],
      error: isOk ? "" : String(envelope["message"] ?? response.payload),
      meta: (envelope["meta"] ?? {}) as Reply["meta"],
      bytes: response.rawPayload,
    };
  }

  /** Sends a JSON body exactly as written. */
  json(method: "POST" | "PUT", url: string, payload: string): Promise<Reply> {
    return this.call(method, url, { headers: { "content-type": "application/json" }, payload });
  }

  text(url: string, payload: string): Promise<Reply> {
    return this.call("POST", url, { headers: { "content-type": "text/plain" }, payload });
  }

  mql(text: string): Promise<Reply> {
    return this.text("/mxobject/mql", text);
  }

  async upload(url: string, name: string, content: string | Uint8Array): Promise<Reply> {
    return this.call(
      "POST",
      url,
      await multipart([["uploadfile", { name, content: Uint8Array.from(Buffer.from(content)) }]]),
    );
  }

  /** Runs a script; the value that it puts into OUTPUT is the message. */
  script(source: string): Promise<Reply> {
    return this.text("/script/exec/js", source);
  }

  /** Rows of a statement that must succeed. */
  async rows(text: string): Promise<readonly Readonly<Record<string, Value>>[]> {
    return messageOf(await this.mql(text)) as readonly Row[];
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.world[Symbol.asyncDispose]();
  }
}

export function messageOf(reply: Reply): unknown {
  if (!reply.isOk) throw new Error(reply.error);
  return reply.message;
}
