import { readFileSync } from "node:fs";
import { Writable } from "node:stream";
import { pino } from "pino";
import { expect, test } from "vitest";
import { SIGN_IN_FREE_FAILURES_PER_USER } from "../../common/limits.ts";
import { AUDIT_CLASS_PATH } from "../../controller/areas/audit/types.ts";
import { CONSOLE_LOG_CLASSES } from "../../controller/areas/consolelog/index.ts";
import { openTestHttp } from "../helpers/http/http-app.ts";
import { programSources } from "../helpers/programs/program-sources.ts";
import { testRuntime } from "../helpers/time/runtime.ts";

/** The programs must log events only to the places in the table of SECURITY.md. */

/** The examples in comments of the client may write where they like. */
const sources = programSources("agent", "common", "controller").filter(
  ({ file }) => file !== "common/client/gen/operations.ts",
);

function filesWith(pattern: RegExp): readonly string[] {
  return sources
    .filter(({ text }) => pattern.test(text))
    .map(({ file }) => file)
    .sort();
}

const table = readFileSync("SECURITY.md", "utf8").split("\n## Logs\n")[1]?.split("\n## ")[0] ?? "";

test("the terminal and standard output are written to by the mains alone, each log is opened in one place", () => {
  const mains = ["controller/cli/main.ts", "controller/main.ts"];
  expect(filesWith(/\bconsole\.\w+\(/)).toEqual(mains);
  // The command line passes its process to one class that writes.
  expect(filesWith(/\bprocess\.(?:stdout|stderr)\b|\bnew Output\(process\b/)).toEqual(["agent/main.ts", ...mains]);
  expect(filesWith(/\bpino\(/)).toEqual(["controller/main.ts"]);
});

test("no file grows but the controller's log and the anchors, and nothing is told to a log of another machine", () => {
  expect(filesWith(/\bappendFile|\bopen(?:Sync)?\([^()]*, "a/)).toEqual([
    "controller/areas/audit/anchor-file.ts",
    "controller/log/file.ts",
  ]);
  expect(filesWith(/\bcreateWriteStream\(/)).toEqual(["controller/http/body/multipart.ts"]);
  expect(filesWith(/from "(?:node:dgram|node:syslog|pino\/|pino-)/)).toEqual([]);
});

test("the table names each of them, with the file or the class as it is called", () => {
  const rows = [...table.matchAll(/^\| ([^|]+) \| [^|]+ \| ([^|]+) \|/gm)].slice(2);
  expect(rows.map(([, name]) => name)).toEqual([
    "Audit trail",
    "The controller's log",
    "The agent's log",
    "Console logs",
  ]);
  const places = rows.map(([, , place = ""]) => place);
  expect(AUDIT_CLASS_PATH).toBe("/system/audit");
  expect(places[0]).toContain("the class `audit` of the tenant's store");
  expect(places[0]).toContain("`audit_anchor_file`");
  expect(readFileSync("controller/main.ts", "utf8")).toContain('"log", "controller.log"');
  expect(places[1]).toContain("`log/controller.log` in `data_dir`");
  expect(places[2]).toContain("standard output");
  expect(CONSOLE_LOG_CLASSES.every(({ path }) => path.startsWith("/consolelog/"))).toBe(true);
  expect(places[3]).toContain("the classes `consolelog/*` of the tenant's store");
});

test("who tries to get around is named: guesses, also those that are turned away, bad input, pages of other sites", async () => {
  const lines: Record<string, unknown>[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      for (const line of chunk.toString("utf8").split("\n").filter(Boolean))
        lines.push(JSON.parse(line) as Record<string, unknown>);
      done();
    },
  });
  await using http = await openTestHttp({ runtime: { ...testRuntime(), log: pino(stream) } });
  const remoteAddress = "203.0.113.9";
  const payload = { company: "matrix", username: "viewer", password: "a wrong one" };
  for (let at = 0; at <= SIGN_IN_FREE_FAILURES_PER_USER + 1; at++)
    await http.app.inject({ method: "POST", url: "/user/signin", payload, remoteAddress });
  const cookie = `matrixSession=${await http.signIn("admin")}`;
  const token = { name: "t", scopes: ["*:read"], days: 1 };
  const ask = (asked: object, headers: Record<string, string>) =>
    http.app.inject({
      method: "POST",
      url: "/user/tokens",
      payload: asked,
      remoteAddress,
      headers: { cookie, ...headers },
    });
  await ask({ ...token, days: "many" }, { "x-requested-with": "test" });
  await ask(token, { origin: "https://evil.example" });
  const named = lines.map(({ path, code, remote, user }) => [path, code, remote, user]);
  expect(named).toContainEqual(["/user/signin", "denied", remoteAddress, ""]);
  expect(named).toContainEqual(["/user/signin", "limited", remoteAddress, ""]);
  expect(named).toContainEqual(["/user/tokens", "invalid", remoteAddress, "admin"]);
  expect(named).toContainEqual(["/user/tokens", "denied", remoteAddress, "admin"]);
  expect(lines.every(({ traceparent, time }) => typeof traceparent === "string" && typeof time === "number")).toBe(
    true,
  );
  expect(JSON.stringify(lines)).not.toContain("a wrong one");
});
