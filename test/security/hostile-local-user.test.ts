import { execFileSync } from "node:child_process";
import {
  chown,
  lchown,
  link,
  lstat,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rename,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { putInPlace, takeAway } from "../../agent/plugins/depot-deployer/remote.ts";
import { openTrusted, TrustedFolder } from "../../agent/disk/trusted-path.ts";
import { seededRandom } from "../helpers/time/clock.ts";
import { LogAgent } from "../helpers/hosts/log-agent.ts";

/** Any user except root; the user needs no name. */
const USER = 4_321;
const OTHER = 4_322;
const DEADLINE_MS = 20_000;

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "odp-hostile-"));
  await mkdir(at("secrets"), { mode: 0o700 });
  await writeFile(at("secrets/shadow"), "root:secret\n", { mode: 0o600 });
  await mkdir(at("user"));
});

afterEach(() => rm(folder, { recursive: true, force: true }));

function at(path: string): string {
  return join(folder, path);
}

async function asUser(path: string, work: (path: string) => Promise<unknown>, owner = USER): Promise<void> {
  await work(at(path));
  await lchown(at(path), owner, owner);
}

// Only root can change the owner of files.
describe.runIf(process.getuid?.() === 0)("a user who owns the folder in which the agent works as root", () => {
  beforeEach(() => chown(at("user"), USER, USER));

  describe("followed logs", () => {
    it("a link to another user's file ships nothing, and is followed as soon as it is a file of that user", async () => {
      await asUser("user/app.log", (path) => symlink(at("secrets/shadow"), path));
      await asUser("user/own.log", (path) => writeFile(path, "mine\n"));
      await using agent = await follow(at("user"));
      await agent.delivers("mine");
      expect(await agent.lines()).toEqual(["mine"]);
      expect(agent.logged.join("\n")).toContain("app.log is not followed");
    });

    it("links of root, and links of a user to files of that user, are followed", async () => {
      await asUser("user/run-1.txt", (path) => writeFile(path, "run\n"));
      await asUser("user/current.log", (path) => symlink("run-1.txt", path));
      await symlink(at("secrets/shadow"), at("user/by-root.log"));
      await using agent = await follow(at("user"));
      await agent.delivers("run");
      await agent.delivers("root:secret");
    });

    it("a folder that is swapped for a link leads nowhere else", async () => {
      await asUser("user/logs", (path) => symlink(at("secrets"), path));
      await asUser("user/own.log", (path) => writeFile(path, "mine\n"));
      await using agent = await follow(at("user"), ".*");
      await agent.delivers("mine");
      expect(await agent.lines()).toEqual(["mine"]);
      await expect(openTrusted(at("user/logs/shadow"))).rejects.toThrow("not followed");
    });

    it("the policy's folder itself, swapped for a link, is not followed", async () => {
      await asUser("user/logs", (path) => symlink(at("secrets"), path));
      await expect(openTrusted(at("user/logs/shadow"))).rejects.toMatchObject({ code: "denied" });
    });

    it("a chain of links is followed only when each one may be", async () => {
      await asUser("user/second", (path) => symlink(at("secrets/shadow"), path));
      await symlink(at("user/second"), at("first"));
      await expect(openTrusted(at("first"))).rejects.toMatchObject({ code: "denied" });
      await asUser("user/loop", (path) => symlink("loop", path));
      await expect(openTrusted(at("user/loop"))).rejects.toMatchObject({ code: "denied" });
    });

    it("a pipe in the place of a log does not hold the agent", async () => {
      await asUser("user/app.log", async (path) => execFileSync("mkfifo", [path]));
      await using opened = await openTrusted(at("user/app.log"));
      expect((await opened.stat()).isFIFO()).toBe(true);
    });
  });

  describe("depots", () => {
    beforeEach(async () => {
      await mkdir(at("depot/sub"), { recursive: true });
      await writeFile(at("depot/app.conf"), "new\n");
      await writeFile(at("depot/sub/deep.conf"), "deep\n");
    });

    it("a link at the place of a file, or at any name beside it, overwrites nothing", async () => {
      for (const name of ["app.conf", "app.conf.odp-new", ".app.conf.odp-new"])
        await asUser(`user/${name}`, (path) => symlink(at("secrets/shadow"), path));
      await put(["app.conf"]);
      expect(await readFile(at("secrets/shadow"), "utf8")).toBe("root:secret\n");
      expect(await readFile(at("user/app.conf"), "utf8")).toBe("new\n");
      expect((await lstat(at("user/app.conf"))).isFile()).toBe(true);
    });

    it("a folder in between that is a link to another user's folder takes nothing", async () => {
      await asUser("user/sub", (path) => symlink(at("secrets"), path));
      await expect(put(["app.conf", "sub/deep.conf"])).rejects.toThrow("not followed");
      expect(await readdir(at("secrets"))).toEqual(["shadow"]);
      expect((await readdir(at("user"))).filter((name) => name.endsWith(".odp-new"))).toEqual([]);
    });

    it("a link to a folder of the same user that lies elsewhere takes nothing either", async () => {
      await mkdir(at("elsewhere"));
      await chown(at("elsewhere"), USER, USER);
      await asUser("user/sub", (path) => symlink(at("elsewhere"), path));
      await expect(put(["sub/deep.conf"])).rejects.toThrow("leads outside");
      expect(await readdir(at("elsewhere"))).toEqual([]);
    });

    it("missing folders are not made through a link", async () => {
      await asUser("user/app", (path) => symlink(at("secrets"), path));
      await expect(TrustedFolder.make(at("user/app/conf.d"))).rejects.toMatchObject({ code: "denied" });
      expect(await readdir(at("secrets"))).toEqual(["shadow"]);
    });

    it("a folder swapped for a link makes an undeployment delete nothing elsewhere", async () => {
      await put(["sub/deep.conf"]);
      await writeFile(at("secrets/deep.conf"), "kept\n");
      await rename(at("user/sub"), at("user/moved"));
      await asUser("user/sub", (path) => symlink(at("secrets"), path));
      await expect(takeAway(at("user"), ["sub/deep.conf"])).rejects.toMatchObject({ code: "denied" });
      await asUser("link", (path) => symlink(at("secrets"), path), OTHER);
      await expect(takeAway(at("link"), ["deep.conf"])).rejects.toMatchObject({ code: "denied" });
      expect(await readFile(at("secrets/deep.conf"), "utf8")).toBe("kept\n");
    });

    it("a folder that is held stays the same one when its name leads elsewhere", async () => {
      await asUser("user/sub", (path) => mkdir(path));
      await using held = await TrustedFolder.open(at("user/sub"));
      await rename(at("user/sub"), at("user/moved"));
      await asUser("user/sub", (path) => symlink(at("secrets"), path));
      await link(at("depot/app.conf"), held.entry("app.conf"));
      expect(await readdir(at("user/moved"))).toEqual(["app.conf"]);
      await rm(held.entry("app.conf"));
      expect(await readdir(at("secrets"))).toEqual(["shadow"]);
    });

    it("what is there is taken away, what is not is none", async () => {
      await put(["app.conf", "sub/deep.conf"]);
      await takeAway(at("user"), ["app.conf", "sub/deep.conf", "gone.conf", "nowhere/gone.conf"]);
      expect(await readdir(at("user/sub"))).toEqual([]);
      await takeAway(at("nowhere"), ["app.conf"]);
    });
  });
});

function put(paths: readonly string[]): Promise<void> {
  return putInPlace(at("depot"), at("user"), { paths, random: seededRandom(1) });
}

async function follow(dir: string, match = "\\.log$") {
  const logged: string[] = [];
  const spec = { name: "p", kind: "log" as const, rule: "/r", dir, match };
  const agent = await LogAgent.start(folder, at("outbox"), {
    spec,
    log: (_level, message) => void logged.push(message),
  });
  return {
    logged,
    lines: () => agent.lines(),
    async delivers(line: string) {
      for (const end = performance.now() + DEADLINE_MS; !(await agent.lines()).includes(line); await pause(5)) {
        if (performance.now() > end)
          throw new Error(`${line} is not delivered: ${(await agent.lines()).join()} ${logged.join()}`);
      }
    },
    [Symbol.asyncDispose]: () => agent.stop(),
  };
}
