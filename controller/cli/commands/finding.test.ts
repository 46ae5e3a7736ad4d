import { lstat, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Clock } from "../../../common/time.ts";
import { openCommands, type Commands } from "../../../test/helpers/programs/commands.ts";
import { writeWhole } from "../whole-file.ts";

/** Search, export and notifications, by commands against a whole controller in this process. */

let commands: Commands;
beforeAll(async () => {
  commands = await openCommands();
  const { odp } = commands;
  await odp([
    "mql",
    "create class /matrix/log (line text, level varchar, keys(line)) with autosearch=true, version=true",
  ]);
  await odp([
    "mql",
    "insert into /matrix/log (line, level) values ('disk full', 'error'), ('disk ok', 'info'), ('cpu', 'info')",
  ]);
});
afterAll(() => commands[Symbol.asyncDispose]());

test("words and conditions find objects of a class or of all; a whole search is passed on", async () => {
  const { odp, json } = commands;
  const lines = async (...words: string[]) =>
    JSON.parse((await odp(["search", ...words, "-o", "json", "--fields", "line"])).out) as unknown;
  expect(await lines("disk", "full")).toEqual([{ line: "disk full" }]);
  expect(await lines("disk", "--class", "/matrix/log", "--limit", "1")).toHaveLength(1);
  expect((await odp("search disk --limit 1")).err).toContain("There may be more than these 1");
  expect(await lines("level=info", "--class", "/matrix/log/")).toHaveLength(2);
  await odp(["mql", "update /matrix/log set level = 'warn' where line = 'disk ok'"]);
  expect(await lines("ok")).toHaveLength(1);
  expect((await odp(["search", "#/matrix/log: | cpu | print line"])).out).toMatch(/^line\n-+\ncpu\n$/);
  expect((await odp(["search", "/matrix/log", "--limit", "1"])).code).toBe(64);
  expect(await json("search kestrel")).toEqual([]);
});

test("an export is written to the standard output, or as a whole to a file", async () => {
  const { odp, line } = commands;
  const { out } = await odp("export /matrix/log");
  expect(out).toMatch(/^CREATE CLASS .*INSERT INTO \/matrix\/log.*disk full/s);
  const file = join(line.folder, "log.mql");
  expect(await odp(["export", "/matrix/log", "-f", file])).toMatchObject({ code: 0, out: "" });
  expect(await readFile(file, "utf8")).toBe(out);
  expect((await odp("export /matrix/log --definitions")).out).not.toContain("INSERT");
  expect((await odp(["export", "/matrix/none", "-f", file])).code).toBe(1);
  expect(await readFile(file, "utf8")).toBe(out);
  expect((await odp(["export", "/matrix/log", "--xlsx", "-f", join(line.folder, "log.xlsx")])).code).toBe(0);
  expect((await readFile(join(line.folder, "log.xlsx"))).subarray(0, 2).toString()).toBe("PK");
  for (const words of ["export /matrix/log --xlsx", "export --below", "export /matrix/log --xlsx --times -f x"])
    expect((await odp(words)).code, words).toBe(64);
});

test("a file whose content breaks off keeps what it had, and nothing is left beside it", async () => {
  const { folder } = commands.line;
  const file = join(folder, "kept.mql");
  await writeFile(file, "before");
  async function* broken() {
    yield await Promise.resolve(Buffer.from("half"));
    throw new Error("broken off");
  }
  await expect(writeWhole(file, broken(), { next: Math.random })).rejects.toThrow("broken off");
  expect(await readFile(file, "utf8")).toBe("before");
  expect((await readdir(folder)).filter((name) => name.endsWith(".part"))).toEqual([]);
  await expect(writeWhole(join(folder, "none/x"), broken(), { next: Math.random })).rejects.toThrow(
    "cannot be written",
  );
});

test("a file keeps its permissions, a link stays a link, and what is no file is never replaced", async () => {
  const { odp, line } = commands;
  const [file, link] = [join(line.folder, "private.mql"), join(line.folder, "link.mql")];
  await writeFile(file, "before", { mode: 0o600 });
  await symlink(file, link);
  expect((await odp(["export", "/matrix/log", "-f", link])).code).toBe(0);
  expect((await lstat(link)).isSymbolicLink()).toBe(true);
  expect([(await stat(file)).mode & 0o777, await readFile(file, "utf8")]).toEqual([
    0o600,
    expect.stringMatching("^CREATE"),
  ]);
  for (const path of ["/dev/null", line.folder, ""])
    expect(await odp(["export", "/matrix/log", "-f", path]), path).toMatchObject({ code: 1 });
  expect((await stat("/dev/null")).isCharacterDevice()).toBe(true);
  expect((await odp("export /matrix/log -f -")).out).toMatch(/^CREATE/);
});

test("notifications are written as they come: one, or all until Ctrl-C, of the wanted source", async () => {
  const { odp, world } = commands;
  const publish = (source: string): void =>
    world.assembly.notifications.publish("matrix", { source, subject: "alerts", title: "disk", msg: "full" } as never);
  const listening = /^odp: listening to alerts$/m;
  let isOpen = false;
  const publishOnce = (err: string): boolean => {
    if (!isOpen && listening.test(err)) for (const source of ["other", "probe", "probe"]) publish(source);
    isOpen ||= listening.test(err);
    return false;
  };
  const one = await odp("notify alerts --source probe", { interruptAt: (_, err) => publishOnce(err) });
  expect(one).toMatchObject({ code: 0, out: expect.stringMatching(/^\S+Z {2}probe {2}disk {2}full\n$/) });
  isOpen = false;
  const all = await odp("notify alerts -f -o json", {
    interruptAt: (out, err) => publishOnce(err) || out.split("\n").length > 3,
  });
  expect(all.code).toBe(130);
  expect(
    all.out
      .trimEnd()
      .split("\n")
      .map((text) => (JSON.parse(text) as { source: string }).source),
  ).toEqual(["other", "probe", "probe"]);
  expect((await odp("notify alerts -o csv")).code).toBe(64);
  const away = await odp("notify alerts -f", { environment: { ODP_URL: "http://127.0.0.1:9" } });
  expect(away).toMatchObject({ code: 1, err: expect.stringContaining("odp context list") });
});

test("a connection that breaks is made again, which is told; what comes then is written", async () => {
  const { odp, world } = commands;
  const sockets: Duplex[] = [];
  world.app.server.on("upgrade", (_request, socket) => sockets.push(socket));
  let told = "";
  const act = (out: string, err: string): boolean => {
    const news = err.slice(told.length);
    told = err;
    if (!news.includes("listening")) return out.includes("full");
    if (sockets.length === 1) sockets[0]?.destroy();
    else
      world.assembly.notifications.publish("matrix", {
        source: "s",
        subject: "alerts",
        title: "disk",
        msg: "full",
      } as never);
    return false;
  };
  const atOnce: Clock = {
    nowMs: () => 0,
    monotonicMs: () => 0,
    after: (_, callback) => (setImmediate(callback), () => undefined),
  };
  const { out, err } = await odp("notify alerts -f", { interruptAt: act, clock: atOnce });
  expect(out).toMatch(/ disk {2}full\n$/);
  expect(err).toMatch(/listening to alerts\n.* Notifications may have been missed\.\n.*listening to alerts\n$/);
});
