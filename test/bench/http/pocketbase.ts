import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { errorText } from "../../../common/errors.ts";
import { eventually, freePort } from "../../helpers/programs/programs.ts";
import { Calls, succeeding, type CallsOptions } from "./calls.ts";
import { perSecond } from "../driver/frame.ts";
import type { WrkCall } from "./wrk.ts";
import { groupOf, item, ITEMS, visibleItem } from "./items.ts";

const MODULE = "github.com/pocketbase/pocketbase/examples/base@v0.39.6";
const BUILD_DEADLINE_MS = 600_000;
const START_DEADLINE_MS = 30_000;
const ADMINISTRATOR = { identity: "admin@example.com", password: "correct horse battery" };
const USER = {
  email: "clerk@example.com",
  password: "correct horse battery",
  passwordConfirm: "correct horse battery",
};
const RULE = '@request.auth.id != "" && owner != "other"';
const RECORDS = "/api/collections/items/records";

/**
 * PocketBase with the same rows, indexes and hidden fields, and a rule on every row. It answers a write before the data
 * is flushed to the disk.
 */
export class PocketBase {
  readonly #folder: string;
  readonly #stop: () => void;
  readonly #calls: Calls;
  readonly #access: Pick<CallsOptions, "port" | "headers">;
  #made = ITEMS;

  private constructor(folder: string, stop: () => void, options: CallsOptions) {
    this.#folder = folder;
    this.#stop = stop;
    this.#calls = new Calls(options);
    this.#access = options;
  }

  /** Starts PocketBase. If it cannot be built or started, prints the reason and returns `undefined`. */
  static async start(atOnce: number): Promise<PocketBase | undefined> {
    const folder = await mkdtemp(join(tmpdir(), "odp-bench-pocketbase-"));
    try {
      await run("go", ["install", MODULE], { GOBIN: folder });
      return await PocketBase.#serve(folder, atOnce);
    } catch (error) {
      console.log(`  PocketBase is not measured: ${errorText(error)}`);
      await rm(folder, { recursive: true, force: true });
      return undefined;
    }
  }

  static async #serve(folder: string, atOnce: number): Promise<PocketBase> {
    const binary = join(folder, "base");
    const port = await freePort();
    const data = `--dir=${join(folder, "data")}`;
    await run(binary, ["superuser", "upsert", ADMINISTRATOR.identity, ADMINISTRATOR.password, data], {});
    const server = spawn(binary, ["serve", `--http=127.0.0.1:${port}`, data], { stdio: "ignore" });
    try {
      await eventually("PocketBase answers", START_DEADLINE_MS, () =>
        fetch(`http://127.0.0.1:${port}/api/health`).then(
          (response) => response.ok || undefined,
          () => undefined,
        ),
      );
      const headers = { authorization: await prepare(port) };
      return new PocketBase(folder, () => server.kill(), { port, atOnce, headers });
    } catch (error) {
      server.kill();
      throw error;
    }
  }

  /** A read of one record, for another client. */
  reading(id: string): WrkCall {
    const { port, headers = {} } = this.#access;
    return { port, method: "GET", path: `${RECORDS}/${id}`, headers };
  }

  get(n: number): Promise<unknown> {
    return succeeding(this.#calls.get(`${RECORDS}/${idOf(visibleItem(n))}`));
  }

  list(n: number): Promise<unknown> {
    return succeeding(
      this.#calls.get(`${RECORDS}?perPage=20&skipTotal=1&filter=${encodeURIComponent(`grp='${groupOf(n % ITEMS)}'`)}`),
    );
  }

  insert(): Promise<unknown> {
    const n = visibleNew(this.#made++);
    return succeeding(this.#calls.json(RECORDS, { id: idOf(this.#made), ...item(n) }));
  }

  async stop(): Promise<void> {
    this.#calls.close();
    this.#stop();
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

function visibleNew(n: number): number {
  return n % 10 === 0 ? n + 1 : n;
}

function idOf(n: number): string {
  return String(n).padStart(15, "0");
}

/** Creates the collection, its rows and the user, and returns the user's token. */
async function prepare(port: number): Promise<string> {
  const nobody = new Calls({ port, atOnce: 1 });
  const administrator = new Calls({
    port,
    atOnce: 16,
    headers: { authorization: await tokenOf(nobody, "_superusers", ADMINISTRATOR) },
  });
  await succeeding(administrator.json("/api/collections", collection()));
  await succeeding(administrator.json("/api/collections/users/records", USER));
  await perSecond(ITEMS, 16, (n) => succeeding(administrator.json(RECORDS, { id: idOf(n), ...item(n) })));
  const token = await tokenOf(nobody, "users", { identity: USER.email, password: USER.password });
  nobody.close();
  administrator.close();
  return token;
}

async function tokenOf(calls: Calls, users: string, credentials: object): Promise<string> {
  const { text } = await succeeding(calls.json(`/api/collections/${users}/auth-with-password`, credentials));
  return (JSON.parse(text) as { token: string }).token;
}

function collection(): object {
  const hidden = ["cost", "margin"];
  const fields = Object.entries(item(0)).map(([name, value]) => ({
    name,
    type: typeof value === "number" ? "number" : "text",
    hidden: hidden.includes(name),
  }));
  const indexes = ["CREATE INDEX items_grp ON items (grp)", "CREATE INDEX items_amount ON items (amount)"];
  return { name: "items", type: "base", fields, indexes, listRule: RULE, viewRule: RULE, createRule: RULE };
}

async function run(
  command: string,
  parameters: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<void> {
  const child = spawn(command, parameters, {
    env: { ...process.env, ...environment },
    stdio: ["ignore", "ignore", "pipe"],
    timeout: BUILD_DEADLINE_MS,
  });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => (said = (said + chunk.toString()).slice(-500)));
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`${command} ${parameters[0] ?? ""} ended with ${String(code)}: ${said.trim()}`);
}
