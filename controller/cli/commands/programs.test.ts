import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bundle } from "../../../test/helpers/programs/bundle.ts";
import { openCommands, type Commands } from "../../../test/helpers/programs/commands.ts";

/** Triggers, rules and scripts, by commands against a whole controller in this process. */

let commands: Commands;
beforeAll(async () => {
  const worker = await bundle(join(import.meta.dirname, "../../script-worker.ts"), `scripts/odp-${process.pid}.mjs`);
  commands = await openCommands({ scripts: pathToFileURL(worker) });
  await commands.odp(["mql", "create class /matrix/log (text varchar) with kind=record"]);
  await commands.odp(["mql", "create class /matrix/box (name varchar, size int, keys(name))"]);
});
afterAll(() => commands[Symbol.asyncDispose]());

async function file(name: string, text: string): Promise<string> {
  const path = join(commands.line.folder, name);
  await writeFile(path, text);
  return path;
}

test("a trigger is stored by its script, listed, shown as what can be stored again, and removed", async () => {
  const { odp, json } = commands;
  const path = await file("check.lua", "return OBJECT.size ~= 13\n");
  const apply = (...more: string[]) =>
    odp(["trigger", "apply", "/matrix/box", "check", "-f", path, "-o", "csv", ...more]);
  expect(await apply("--before", "--level", "3")).toEqual({
    out: "class,name,result\n/matrix/box,check,created\n",
    err: "",
    code: 0,
  });
  expect((await apply("--before")).out).toContain("replaced");
  expect((await odp("trigger list")).out).toMatch(/^\/matrix\/box +check +before a write +yes/m);
  expect((await odp("trigger show /matrix/box check")).out).toBe("return OBJECT.size ~= 13\n");
  const { out } = await odp("trigger show /matrix/box check -o json");
  expect(await odp("trigger apply", { stdin: out })).toMatchObject({ code: 0, err: "" });
  expect(await json("trigger list /matrix/box")).toMatchObject([{ name: "check", attr: { before: "true" } }]);
  expect((await apply("--level", "high")).code).toBe(64);
  expect((await odp("trigger apply /matrix/box", { stdin: "return true" })).code).toBe(64);
  expect((await odp("trigger apply --before", { stdin: out })).code).toBe(64);
  expect((await odp("trigger show /matrix/box chek")).err).toContain("did you mean check?");
  expect((await odp("trigger remove /matrix/box check")).code).toBe(0);
  expect(await json("trigger list")).toEqual([]);
});

test("a rule is stored, tried on lines without storing anything, and its failures are in its log", async () => {
  const { odp, json } = commands;
  const text = "--class=/matrix/log\n--parser=csv\n--fields=text\n";
  const path = await file("log.rule", text);
  expect((await odp(["rule", "apply", "/matrix/rules/log", "-f", path, "-o", "csv"])).out).toContain(
    "/matrix/rules/log,created",
  );
  expect((await odp(["rule", "apply", "/matrix/rules/log", "-f", path])).out).toContain("replaced");
  expect((await odp("rule list --class /matrix/log")).out).toMatch(/^\/matrix\/rules\/log +\/matrix\/log +csv$/m);
  expect((await odp("rule show /matrix/rules/log")).out).toBe(text);
  expect(await odp("rule apply", { stdin: (await odp("rule show /matrix/rules/log -o json")).out })).toMatchObject({
    code: 0,
  });

  const tried = await odp("rule try /matrix/rules/log --lines - -o csv", { stdin: "one\ntwo\n" });
  expect(tried).toMatchObject({ code: 0, out: expect.stringContaining('1,/matrix/log,"{""text"":""one""}"') });
  const failed = await odp(["rule", "try", "-f", path, "--lines", "-"], { stdin: 'a\n"open\n' });
  expect(failed).toMatchObject({ code: 2, err: expect.stringMatching(/1 of 2 records failed\.$/m) });
  expect((await odp("rule try /matrix/rules/log")).code).toBe(64);
  expect((await odp(["mql", "select text from /matrix/log"])).out).toContain("no rows");

  await odp(["fs", "cp", await file("broken.csv", '"open\n'), "odp:/broken.csv"]);
  await odp("api get /action/parsefile -q rule=/matrix/rules/log -q filename=broken.csv");
  expect((await odp("rule log /matrix/rules/log --since 1h")).out).toMatch(/error .*quote/i);
  expect(await json("rule log /matrix/rules/log --level info")).toEqual([]);
  expect((await odp("rule log /matrix/rules/log --since never")).code).toBe(64);
  expect((await odp("rule show /matrix/rules/lag")).err).toContain("did you mean /matrix/rules/log?");
  expect((await odp("rule remove /matrix/rules/log")).code).toBe(0);
  expect(await json("rule list --class /matrix/log")).toEqual([]);
});

/** Runs a command. Just before its first write, another user acts. */
async function overtaken(act: string[], words: readonly string[]) {
  let isActed = false;
  const between = createServer((request, response) => {
    const pass = (): unknown => commands.world.app.server.emit("request", request, response);
    if (request.method !== "PUT" || isActed) return void pass();
    isActed = true;
    void commands.odp(act).then(pass);
  });
  await once(between.listen(0, "127.0.0.1"), "listening");
  try {
    const { port } = between.address() as AddressInfo;
    return await commands.odp(words, { environment: { ODP_URL: `http://127.0.0.1:${port}` } });
  } finally {
    between.closeAllConnections();
    between.close();
  }
}

test("apply replaces neither what another user changed nor what one made since it was read", async () => {
  const [mine, theirs] = [await file("mine", "--class=/matrix/log\n"), await file("theirs", "-- theirs\n")];
  const rule = (path: string) => ["rule", "apply", "/matrix/rules/raced", "-f", path];
  const trigger = (path: string) => ["trigger", "apply", "/matrix/box", "raced", "-f", path];
  for (const apply of [rule, trigger])
    for (const round of ["made", "changed"]) {
      const ran = await overtaken(apply(theirs), apply(mine));
      expect(ran, round).toMatchObject({ code: 1, out: "", err: expect.stringContaining("Another user was faster") });
    }
  expect((await commands.odp("rule show /matrix/rules/raced")).out).toBe("-- theirs\n");
  expect((await commands.odp("trigger show /matrix/box raced")).out).toBe("-- theirs\n");
});

test("a script of the controller or of this machine is run with its input, and its log is shown and followed", async () => {
  const { odp, json } = commands;
  expect(await json("script list")).toEqual([]);
  const path = await file("sum.js", 'log.info("adding " + input.a); OUTPUT = { sum: input.a + input.b };');
  await odp(["fs", "cp", path, "odp:/script/tools/sum.js"]);
  expect((await odp("script list -o name")).out).toBe("/tools/sum.js\n");
  const ran = await odp(["script", "run", "/tools/sum.js", "--json-input", '{"a":1,"b":2}', "-o", "csv"]);
  expect(ran).toEqual({ out: "sum\n3\n", err: "", code: 0 });
  const local = await file("say.js", "OUTPUT = `${INPUT}!`;");
  expect((await odp(["script", "run", "-f", local, "--input", "hello"])).out).toBe("hello!\n");
  expect((await odp(["script", "run", "-f", local, "--json-input", "{}"])).code).toBe(64);
  expect((await odp("script run")).code).toBe(64);
  expect((await odp("script run /tools/none.js")).code).toBe(1);
  expect((await odp("script logs /tools/sum.js")).out).toMatch(/^\S+Z +info .* adding 1$/m);
  const follow = odp("script logs /tools/sum.js -f -o json", { interruptAt: (out) => out.includes("adding 7") });
  await odp(["script", "run", "/tools/sum.js", "--json-input", '{"a":7,"b":2}']);
  const { out, err, code } = await follow;
  expect([err, code]).toEqual(["", 130]);
  const entries = out
    .trimEnd()
    .split("\n")
    .map((text) => JSON.parse(text) as { readonly msg: string });
  expect(entries.map(({ msg }) => msg.replace(/.*: /, ""))).toEqual(["adding 1", "adding 7"]);
  expect((await odp("script logs /tools/sum.js -f -o csv")).code).toBe(64);
  expect((await odp("script logs tools/sum.js --level info")).out).toContain("adding 1");
  expect((await odp("script logs /tools/sum.js --limit 0 -o name")).out).toBe("");
  expect((await odp(["__complete", "--", "script", "run", "/to"])).out).toBe("/tools/sum.js\n");
});
