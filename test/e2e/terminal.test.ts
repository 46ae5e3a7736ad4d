import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { columnsOf } from "../../controller/cli/formats/width.ts";

/** The bundle of the command line on a terminal, which `script` makes, with data that attacks it. */

const program = "dist/odp.js";
const PATIENCE = { timeout: 60_000 };
const EVIL = "\u001b[2J\u001b]0;title\u0007\u009b31m\u202eline\r\nbreak\u0000";
const HOSTS = [
  { host: "web-1", status: "online", tags: ["x".repeat(1 << 20)] },
  { host: `監視サーバー${EVIL}`, status: EVIL, tags: ["👩‍👩‍👧‍👦", EVIL], iplist: [`${"東".repeat(999)}`] },
  { host: "y".repeat(300), status: "offline", hostgroups: [EVIL.repeat(5_000)] },
];

let server: Server;
let folder: string;
/** Ends the endless answers. */
const endless = new Set<ServerResponse>();
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "odp-terminal-"));
  server = createServer((request, response) => {
    response.setHeader("content-type", "application/json");
    if (request.url?.startsWith("/host")) return void response.end(JSON.stringify({ status: "ok", message: HOSTS }));
    endless.add(response);
    response.write('{"status":"ok","message":[{"n":0}');
    void fill(response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await rm(folder, { recursive: true });
});

/** Rows without an end, as fast as they are read. */
async function fill(response: ServerResponse): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => {
    endless.delete(response);
    gone.abort();
  });
  while (!response.destroyed) {
    const isRoom = response.write(`,{"n":1}`.repeat(5_000));
    if (isRoom) await new Promise(setImmediate);
    else await once(response, "drain", { signal: gone.signal }).catch(() => undefined);
  }
}

function environmentOf(more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const { port } = server.address() as AddressInfo;
  const access = { ODP_URL: `http://127.0.0.1:${port}`, ODP_TOKEN: "odp_x", ODP_CONFIG_DIR: folder };
  return { PATH: process.env["PATH"], TERM: "xterm-256color", PAGER: "", TZ: "Europe/Oslo", ...access, ...more };
}

interface Terminal {
  readonly columns?: number;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs `odp` on a terminal. Lines of the answer end with a line feed, as the program wrote them. */
function onTerminal(words: string, { columns = 80, env = {} }: Terminal = {}) {
  const line = `stty cols ${columns} rows 24; exec ${process.execPath} ${program} ${words}`;
  const child = spawn("script", ["-qefc", line, "/dev/null"], { env: environmentOf({ SHELL: "/bin/sh", ...env }) });
  let out = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
  const exit = once(child, "close").then(([code]) => Number(code));
  return {
    exit,
    out: () => out.replaceAll("\r\n", "\n"),
    key: (text: string) => child.stdin.write(text),
  };
}

/** Runs a line of a shell without a terminal. */
async function inShell(line: string) {
  const env = environmentOf({ ODP: `${process.execPath} ${program}` });
  const child = spawn("bash", ["-c", `set -o pipefail; ${line}`], { env, stdio: ["ignore", "pipe", "pipe"] });
  let [out, err] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
  const [code] = (await once(child, "close")) as [number];
  return { out, err, code };
}

/** Control characters that are neither a line break nor of a colour. */
const OBEYED = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/;

test.each([20, 80, 200])("a table fits %d columns, and no value of it controls the terminal", async (columns) => {
  for (const [env, format] of [
    [{}, "table"],
    [{ NO_COLOR: "1" }, "table"],
    [{ NO_COLOR: "1" }, "json"],
  ] as const) {
    const run = onTerminal(`host list -o ${format}`, { columns, env });
    expect(await run.exit).toBe(0);
    const text = "NO_COLOR" in env ? run.out() : run.out().replaceAll(/\u001b\[\d*m/g, "");
    expect(OBEYED.exec(text)).toBeNull();
    if (format === "json") expect(JSON.parse(text)).toEqual(HOSTS);
    else {
      const widths = text.split("\n").map(columnsOf);
      expect(Math.max(...widths)).toBeLessThanOrEqual(columns);
    }
  }
});

test("colours are for terminals alone", async () => {
  const run = onTerminal("host list --fields status");
  expect(await run.exit).toBe(0);
  expect(run.out()).toContain("\u001b[32monline");
  expect((await inShell("$ODP host list --fields status")).out).not.toContain("\u001b");
});

test("Ctrl-C in the middle of an answer ends with 130, and ends the call", async () => {
  const run = onTerminal("mql 'select n from /a limit -1' -o csv");
  await expect.poll(run.out, PATIENCE).toContain("n\n0\n1\n1\n");
  run.key("\u0003");
  expect(await run.exit).toBe(130);
  expect(run.out()).not.toMatch(/ at .*odp|UnhandledPromise|\bError\b/);
  await expect.poll(() => endless.size, PATIENCE).toBe(0);
});

test("Ctrl-C ends a watched answer with 130, and leaves the terminal as it was", async () => {
  const run = onTerminal("host list --watch=1");
  await expect.poll(run.out, PATIENCE).toMatch(/T[\d:]+\+0[12]:00, every 1 s/);
  run.key("\u0003");
  expect(await run.exit).toBe(130);
  const modes = [...run.out().matchAll(/\u001b\[\?\d+[hl]/g)].map(([mode]) => mode);
  expect(modes.at(-1)).toBe("\u001b[?7h");
});

test("a reader that closes its pipe ends the command quietly, and ends the call", async () => {
  expect(await inShell("$ODP mql 'select n from /a limit -1' -o csv | head -1")).toEqual({
    out: "n\n",
    err: "",
    code: 0,
  });
  await expect.poll(() => endless.size, PATIENCE).toBe(0);
  expect(await inShell("$ODP host list -o json | head -1")).toEqual({ out: "[\n", err: "", code: 0 });
});

test("a reader that closes its pipe ends a watched answer that never changes", async () => {
  expect(await inShell("$ODP host list -o json --watch=1 | head -1")).toEqual({ out: "[\n", err: "", code: 0 });
  expect(await inShell("$ODP host list --fields status --watch=1 | head -1")).toMatchObject({ err: "", code: 0 });
});

test("a pager shows what is longer than the terminal, and may end early", async () => {
  const run = onTerminal("host list -o json", { env: { PAGER: "head -2 | sed s/^/paged:/" } });
  expect(await run.exit).toBe(0);
  expect(run.out()).toBe("paged:[\npaged:  {\n");
});
