import { expect, test } from "vitest";
import type { Files } from "../../../common/files.ts";
import { ForgetfulFiles } from "./forgetful-files.ts";

const SEEDS = Array.from({ length: 300 }, (_, seed) => seed);

test("what was synced, with its name, is there after a power cut", async () => {
  for (const seed of SEEDS) {
    const disk = new ForgetfulFiles(seed);
    const files = disk.boot();
    await write(files, "/a", "kept");
    await sync(files, "/a");
    await sync(files, "/");
    const file = await files.open("/a", "r+");
    await file.write(Buffer.from("lost?"), 0, 5, 0);
    disk.powerCut();
    const [byte] = await disk.boot().readFile("/a");
    expect(["k".charCodeAt(0), "l".charCodeAt(0)]).toContain(byte);
  }
});

test("of what was not synced any part is lost: contents, names, renames, and nothing at all", async () => {
  const outcomes = new Set<string>();
  for (const seed of SEEDS) {
    const disk = new ForgetfulFiles(seed);
    const files = disk.boot();
    await write(files, "/old", "old");
    await sync(files, "/old");
    await sync(files, "/");
    await write(files, "/new", "x".repeat(1_500));
    await files.rename("/new", "/old");
    disk.powerCut();
    const all = [...disk.contents()].map(
      ([path, bytes]) => `${path}:${/^(x{1500}|old)$/.test(bytes.toString()) ? bytes.length : "torn"}`,
    );
    outcomes.add(all.sort().join(" "));
  }
  for (const expected of ["/old:3", "/old:1500", "/old:torn", "/new:torn /old:3"])
    expect([...outcomes]).toContain(expected);
  expect([...outcomes].every((outcome) => outcome.includes("/old"))).toBe(true);
});

test("a killed program loses nothing and does nothing more", async () => {
  const disk = new ForgetfulFiles(1);
  const dead = disk.boot();
  await write(dead, "/a", "written");
  disk.kill();
  let answered = false;
  void dead.readdir("/").then(() => (answered = true));
  expect((await disk.boot().readFile("/a")).toString()).toBe("written");
  expect(answered).toBe(false);
});

test("a failed sync keeps nothing, also when the next one succeeds", async () => {
  const disk = new ForgetfulFiles(1);
  const files = disk.boot();
  const file = await files.open("/a", "w");
  await sync(files, "/");
  await file.write(Buffer.from("lost"), 0, 4, 0);
  disk.faults.fails = (operation) => operation === "sync";
  await expect(file.sync()).rejects.toMatchObject({ code: "EIO" });
  disk.faults.fails = () => false;
  await file.sync();
  disk.powerCut();
  expect(disk.contents().get("/a")?.length).toBe(0);
});

test("it is full at its capacity", async () => {
  const disk = new ForgetfulFiles(1);
  disk.faults.capacityBytes = 10;
  const file = await disk.boot().open("/a", "w");
  expect(await file.write(Buffer.alloc(20), 0, 20, 0)).toEqual({ bytesWritten: 10 });
  await expect(file.write(Buffer.alloc(10), 0, 10, 10)).rejects.toMatchObject({ code: "ENOSPC" });
  await file.truncate(5);
  expect(await file.write(Buffer.alloc(10), 0, 10, 5)).toEqual({ bytesWritten: 5 });
});

test("the same seed and the same calls leave the same disk", async () => {
  const left = await Promise.all(
    [7, 7].map(async (seed) => {
      const disk = new ForgetfulFiles(seed);
      const files = disk.boot();
      await Promise.all(Array.from({ length: 20 }, (_, n) => write(files, `/${n % 7}`, String(n).repeat(400))));
      disk.powerCut();
      return [...disk.contents()].map(([path, bytes]) => [path, bytes.toString()]);
    }),
  );
  expect(left[0]).toEqual(left[1]);
});

async function write(files: Files, path: string, text: string): Promise<void> {
  const file = await files.open(path, "w");
  await file.write(Buffer.from(text), 0, text.length, 0);
}

async function sync(files: Files, path: string): Promise<void> {
  await (await files.open(path, "r")).sync();
}
