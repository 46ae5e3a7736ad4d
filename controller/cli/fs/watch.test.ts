import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  ADMIN,
  environmentOf,
  openFileSync,
  requestOf,
  type FileSyncWorld,
  type Folders,
} from "../../../test/helpers/programs/file-sync.ts";
import { PASSWORD } from "../../../test/helpers/http/http-app.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { TestClock } from "../../../test/helpers/time/runtime.ts";
import { AppError } from "../../../common/errors.ts";
import { FILE_SYNC_PAUSE_MAX_MS, FILE_SYNC_QUIET_MS } from "../../../common/limits.ts";
import type { SyncResult } from "./execution.ts";
import { syncWatching, type SyncEnvironment, type SyncRequest } from "./run.ts";
import { FolderChanges, watchFolder, type Changes } from "./watch.ts";

/** `odp fs sync --watch`: it waits for what happens, and so do these tests. */

let world: FileSyncWorld;
beforeAll(async () => void (world = await openFileSync()));
afterAll(() => world[Symbol.asyncDispose]());

class Watching {
  readonly end = new AbortController();
  readonly notes: string[] = [];
  readonly exit: Promise<number>;
  readonly #results: SyncResult[] = [];
  #seen = 0;
  #arrived: () => void = () => undefined;

  constructor(request: Partial<SyncRequest>, more: Partial<SyncEnvironment> = {}) {
    const told = (result: SyncResult): void => {
      this.#results.push(result);
      this.#arrived();
    };
    const note = (text: string): void => {
      this.notes.push(text);
      this.#arrived();
    };
    const environment = environmentOf(world, { ...more, signal: this.end.signal, told, note });
    this.exit = syncWatching(requestOf(request), environment);
    this.exit.catch(() => this.#arrived());
  }

  /** Resolves when a result that came after those of earlier calls is so. */
  async until(isSo: (result: SyncResult) => boolean): Promise<void> {
    for (;;) {
      const at = this.#results.findIndex((result, index) => index >= this.#seen && isSo(result));
      if (at !== -1) return void (this.#seen = at + 1);
      await new Promise<void>((resolve) => (this.#arrived = resolve));
    }
  }

  /** Resolves when that many notes were given. */
  async noted(count: number): Promise<void> {
    while (this.notes.length < count) await new Promise<void>((resolve) => (this.#arrived = resolve));
  }

  get comparisons(): number {
    return this.#results.length;
  }
}

/** A folder that is watched, after its first comparison and the one that follows the beginning of the watch. */
async function watched(options: Partial<SyncRequest> = {}): Promise<{ folders: Folders; watching: Watching }> {
  const folders = await world.folders();
  await folders.write("a.js", "one");
  const watching = new Watching({ from: folders.local, to: folders.remote, ...options });
  await watching.until(() => watching.comparisons >= 2);
  return { folders, watching };
}

/** As editors save a file: a new one beside it, then in its place. */
async function save(folders: Folders, name: string, text: string): Promise<void> {
  await writeFile(folders.path(`${name}~`), text);
  await rename(folders.path(`${name}~`), folders.path(name));
}

describe("watching a local folder", () => {
  test("sends what an editor saves, also in new folders, and removes only with --delete", async () => {
    const { folders, watching } = await watched({ isDeleting: true });
    await save(folders, "a.js", "two");
    await watching.until((result) => result.replaced.includes("a.js"));
    await mkdir(folders.path("new/deep"), { recursive: true });
    await save(folders, "new/deep/b.js", "three");
    await watching.until((result) => result.created.includes("new/deep/b.js"));
    await save(folders, "new/deep/b.js", "four");
    await watching.until((result) => result.replaced.includes("new/deep/b.js"));
    await rm(folders.path("a.js"));
    await watching.until((result) => result.removed.includes("a.js"));
    watching.end.abort();
    expect(await watching.exit).toBe(0);
    expect(await folders.own()).toEqual([expect.stringMatching(/\.json$/)]);
  });

  test("ends when the folder goes, and removes nothing", async () => {
    const { folders, watching } = await watched({ isDeleting: true });
    await rename(folders.local, `${folders.local}-away`);
    await mkdir(folders.local);
    await writeFile(folders.path("other.js"), "other");
    await expect(watching.exit).rejects.toMatchObject({ code: "not_found" });
    expect(await folders.there()).toEqual({ "a.js": "one" });
  });

  test("goes on when the controller is back, and compares all", async () => {
    const folders = await world.folders();
    await folders.write("a.js", "one");
    let isAway = false;
    const client = world.client((url, init) =>
      isAway
        ? Promise.reject(Object.assign(new Error("gone"), { code: "ECONNREFUSED", syscall: "connect" }))
        : fetch(url, init),
    );
    const clock = { ...realClock, after: (ms: number, fire: () => void) => realClock.after(Math.min(ms, 50), fire) };
    const watching = new Watching({ from: folders.local, to: folders.remote }, { client, clock });
    await watching.until(() => watching.comparisons >= 2);
    isAway = true;
    await save(folders, "a.js", "two");
    await watching.noted(1);
    await save(folders, "b.js", "new");
    isAway = false;
    await watching.until((result) => result.created.includes("b.js"));
    expect(await folders.there()).toEqual({ "a.js": "two", "b.js": "new" });
    expect(watching.notes).toEqual([expect.stringMatching(/gone.*Trying again/), "going on"]);
    watching.end.abort();
    expect(await watching.exit).toBe(0);
  });
});

test("watching a folder of the controller brings down what others write", async () => {
  const folders = await world.folders();
  await folders.writeThere("a.js", "one");
  const clock = { ...realClock, after: (ms: number, fire: () => void) => realClock.after(Math.min(ms, 50), fire) };
  const watching = new Watching({ from: folders.remote, to: folders.local }, { clock });
  await watching.until((result) => result.created.includes("a.js"));
  await folders.writeThere("b.js", "two");
  await watching.until((result) => result.created.includes("b.js"));
  expect(await folders.here()).toEqual({ "a.js": "one", "b.js": "two" });
  watching.end.abort();
  expect(await watching.exit).toBe(0);
});

test("Ctrl-C ends the program, with its state written", async () => {
  const folders = await world.folders();
  await folders.write("a.js", "one");
  const words = ["fs", "sync", folders.local, folders.remote, "--watch"];
  const env = { ...process.env, ODP_URL: world.url, ODP_USER: "matrix.admin", ODP_PASSWORD: PASSWORD };
  const child = spawn(process.execPath, ["--import", "tsx", "controller/cli/main.ts", ...words], { env });
  let told = "";
  child.stderr.on("data", (data: Buffer) => (told += data.toString()));
  const closed = once(child, "close");
  await expect.poll(() => told, { timeout: 60_000 }).toContain("1 created");
  child.kill("SIGINT");
  expect([await closed, told.split("\n")]).toEqual([
    [0, null],
    [`${folders.local} to ${folders.remote}: 1 created`, ""],
  ]);
  const [state = "", ...others] = await folders.own();
  expect([others, await readFile(folders.path(state), "utf8")]).toEqual([[], expect.stringContaining("a.js")]);
  expect((await world.files.read(ADMIN, folders.place("a.js").path)).text).toBe("one");
});

describe("the rhythm of a watch", () => {
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  /** A watch under a clock that the test moves. */
  function rhythm(compare: () => Promise<void>) {
    const [clock, end] = [new TestClock(), new AbortController()];
    let [isChanged, wake] = [false, (): void => undefined];
    const changes: Changes = {
      follow: () => false,
      begin: () => (isChanged = false),
      close: () => undefined,
      async changed(signal) {
        if (isChanged) return;
        await new Promise<void>((resolve) => {
          wake = resolve;
          signal.addEventListener("abort", () => resolve());
        });
      },
    };
    let comparisons = 0;
    const done = watchFolder({
      ...{ changes, clock, signal: end.signal, everyMs: 60_000, random: { next: () => 1 }, note: () => undefined },
      async compare() {
        comparisons++;
        await compare();
        return { folders: [], isUnfinished: false };
      },
    });
    done.catch(() => undefined);
    const pass = async (ms: number): Promise<void> => {
      clock.advance(ms);
      for (let turns = 0; turns < 5; turns++) await turn();
    };
    const change = async (): Promise<void> => {
      isChanged = true;
      wake();
      await pass(0);
    };
    return { pass, change, comparisons: () => comparisons, end: () => (end.abort(), done) };
  }

  test("a burst of changes is one comparison, after quiet, or in time if there is no quiet", async () => {
    const watch = rhythm(() => Promise.resolve());
    await watch.pass(0);
    for (let count = 0; count < 4; count++) {
      await watch.change();
      await watch.pass(FILE_SYNC_QUIET_MS / 2);
    }
    expect(watch.comparisons()).toBe(1);
    await watch.pass(FILE_SYNC_QUIET_MS);
    expect(watch.comparisons()).toBe(2);
    for (let count = 0; count < 25; count++) {
      await watch.change();
      await watch.pass(FILE_SYNC_QUIET_MS / 2);
    }
    expect(watch.comparisons()).toBe(3);
    await watch.end();
  });

  test("without a change both sides are compared now and then", async () => {
    const watch = rhythm(() => Promise.resolve());
    await watch.pass(0);
    await watch.pass(59_999);
    expect(watch.comparisons()).toBe(1);
    await watch.pass(1);
    expect(watch.comparisons()).toBe(2);
    await watch.end();
  });

  test("pauses after failures double up to the longest; a failure that does not pass ends it", async () => {
    let failure = new AppError("unavailable", "away.");
    const watch = rhythm(() => Promise.reject(failure));
    await watch.pass(0);
    for (const [ms, count] of [
      [999, 1],
      [1, 2],
      [1_999, 2],
      [1, 3],
      [3_999, 3],
      [1, 4],
    ] as const) {
      await watch.pass(ms);
      expect(watch.comparisons()).toBe(count);
    }
    for (let count = 5; count < 12; count++) await watch.pass(FILE_SYNC_PAUSE_MAX_MS);
    expect(watch.comparisons()).toBe(11);
    failure = new AppError("denied", "no.");
    await watch.pass(FILE_SYNC_PAUSE_MAX_MS);
    await expect(watch.end()).rejects.toMatchObject({ code: "denied" });
  });
});

test("folders that cannot be watched are named once, and are only compared now and then", async () => {
  const folders = await world.folders();
  await folders.write("a.js", "one");
  const notes: string[] = [];
  const changes = new FolderChanges({ root: folders.local, isIgnored: () => false, note: (text) => notes.push(text) });
  expect([changes.follow(["a.js/one", "a.js/two"]), changes.follow(["", "a.js/one"])]).toEqual([false, true]);
  expect(notes).toEqual([expect.stringContaining("changes there are found later")]);
  changes.close();
});
