import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../helpers/programs/programs.ts";
import { startSshd, type Sshd } from "../helpers/hosts/sshd.ts";
import { Installation } from "./installation.ts";

const DEADLINE_MS = 60_000;
/** Reads the value set by `BEGIN`, writes one under its own name, prints the token, and runs until `go` is 1. */
const COMMAND = `
const { ODP_CONTEXT_URL: url, ODP_CONTEXT_TOKEN: token } = process.env;
const headers = { authorization: "Bearer " + token };
const read = async () => (await (await fetch(url, { headers })).json()).message;
const [, , name, folder] = process.argv;
require("node:fs").writeFileSync(folder + "/token-" + name, token);
console.log("begun by " + (await read()).begun, token);
await fetch(url, { method: "PUT", headers, body: new URLSearchParams({ name, value: "was here" }) });
while ((await read()).go !== "1") await new Promise((resolve) => setTimeout(resolve, 100));
console.error(token.slice(0, 40));
process.stderr.write(token.slice(40));
`;
const BEGIN = `job.setcontext(INPUT.sid, "begun", "the script"); `;
const END = `OUTPUT = job.getcontext(INPUT.sid)`;

const sshd = await startSshd();
if (!sshd && process.env.ODP_REQUIRE_CLUSTER === "1")
  throw new Error("OpenSSH's server is needed (apt-get install openssh-server).");

describe.skipIf(!sshd)("the context of a run, on a host with an agent and on one over SSH", () => {
  const server = sshd as Sshd;
  let odp: Installation;
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "odp-context-"));
    await writeFile(join(folder, "command.cjs"), `(async () => {${COMMAND}})();`);
    odp = await Installation.start({ ODP_STORE: "embedded", ODP_LOG_LEVEL: "trace" });
    await odp.enrol("agent");
    const config = { username: server.username, port: server.port, privatekey: server.privateKey };
    await odp.ok("POST", "/host", JSON.stringify({ host: "bare", iplist: ["127.0.0.1"], config }));
    const exec = `"${process.execPath}" ${folder}/command.cjs "$(basename "$HOME")" ${folder}`;
    const job = new URLSearchParams({ name: "meeting", dir: "e2e", begin: BEGIN, end: END, timeout: "120", exec });
    for (const host of ["agent", "bare"]) job.append("host", host);
    await odp.ok("POST", "/job", job);
  });

  afterAll(async () => {
    await odp.stop();
    await server[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  async function withToken(token: string, method: string, path: string): Promise<{ status: string; message: unknown }> {
    const response = await fetch(odp.url + path, {
      method,
      headers: { authorization: `Bearer ${token}`, connection: "close" },
      signal: AbortSignal.timeout(DEADLINE_MS),
    });
    return (await response.json()) as { status: string; message: unknown };
  }

  test("commands and scripts meet in it, and the token of a command is good for nothing else", async () => {
    const runId = String(await odp.ok("GET", "/job/exec/meeting@e2e"));
    const rows = () => odp.mql(`select host, sid, status, out, err from /matrix/jobs/jobrun where runid='${runId}'`);
    const sid = await eventually("the run has rows", DEADLINE_MS, async () => (await rows())[0]?.["sid"] as string);
    const path = `/job/context/${encodeURIComponent(sid)}`;
    const met = await eventually("both commands wrote", DEADLINE_MS, async () => {
      const all = (await odp.ok("GET", path)) as Record<string, string>;
      return Object.keys(all).length === 3 ? all : undefined;
    });
    const names = Object.keys(met).filter((name) => name !== "begun");
    expect(met).toEqual({ begun: "the script", ...Object.fromEntries(names.map((name) => [name, "was here"])) });
    const tokens = await Promise.all(names.map((name) => readFile(join(folder, `token-${name}`), "utf8")));
    await opensNothingElse(tokens[0] ?? "", sid);
    await odp.ok("PUT", path, new URLSearchParams({ name: "go", value: "1" }));
    const ended = await eventually("the run is over", DEADLINE_MS, async () => {
      const found = await rows();
      return found.length === 4 && found.every(({ status }) => status !== "running") ? found : undefined;
    });
    expect(ended.map(({ status }) => status)).toEqual(["ok", "ok", "ok", "ok"]);
    const host = ended.find((row) => row["host"] === "bare");
    expect(host?.["out"]).toMatch(/^begun by the script odprun\.sealed1\.[0-9a-f]+\.\*{6}\n$/);
    expect(JSON.parse(String(ended.find((row) => row["host"] === "-end")?.["out"]))).toMatchObject({ ...met, go: "1" });
    for (const token of tokens) expect((await withToken(token, "GET", path)).status).toBe("signin");
    await isNowhere(tokens);
  });

  async function opensNothingElse(token: string, sid: string): Promise<void> {
    const path = `/job/context/${encodeURIComponent(sid)}`;
    expect(await withToken(token, "GET", path)).toMatchObject({ status: "ok" });
    expect(await withToken(token, "GET", "/job/context/other")).toMatchObject({ status: "error" });
    const { paths } = (await (await fetch(`${odp.url}/openapi.json`)).json()) as {
      paths: Record<string, Record<string, { readonly "x-permission"?: string }>>;
    };
    const open: string[] = [];
    let asked = 0;
    for (const [template, methods] of Object.entries(paths))
      for (const [method, { "x-permission": permission }] of Object.entries(methods)) {
        // Sockets are no methods. Public operations ask for a sign-in, if at all, after they have read their input.
        if (template.startsWith("/job/context/") || method === "x-websocket" || permission === undefined) continue;
        asked++;
        const { status } = await withToken(token, method.toUpperCase(), template.replace(/\{[^}]*\}/g, "x"));
        if (status !== "signin") open.push(`${method} ${template} ${status}`);
      }
    expect(asked).toBeGreaterThan(100);
    expect(open).toEqual([]);
  }

  /** The token is neither in the answers nor in the log. */
  async function isNowhere(tokens: readonly string[]): Promise<void> {
    const secrets = tokens.map((token) => token.split(".").at(-1) ?? token);
    const classes = ["system/commandoutput", "system/command", "system/audit", "jobs/jobrun"];
    const answers = await Promise.all(classes.map((name) => odp.mql(`select * from /matrix/${name} limit -1`)));
    const texts = [
      JSON.stringify(answers),
      odp.controller.output,
      await readFile(join(odp.folder, "data/log/controller.log"), "utf8"),
    ];
    expect(secrets.filter((secret) => texts.some((text) => text.includes(secret)))).toEqual([]);
  }
});
