import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openSecretKey } from "../secrets/index.ts";
import type { KeyStatus } from "../../common/api/keys.ts";
import { exitCodeOfKeys, KEY_STUCK, KEY_UNDER_WAY, keyText, makeKeyFile, rotateKeyFile } from "./key.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "odp-key-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test("a key file that is made is the one that a cluster's controllers require, and only its owner reads it", async () => {
  const [file, other] = [join(folder, "secret.key"), join(folder, "other.key")];
  await makeKeyFile(file);
  await makeKeyFile(other);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  const box = await openSecretKey({ file, create: false });
  expect(box.open(box.seal("s3cret", "c"), "c")).toBe("s3cret");
  expect(box.keyId).not.toBe((await openSecretKey({ file: other, create: false })).keyId);
});

test("a key file that is there stays as it is", async () => {
  const file = join(folder, "kept.key");
  await makeKeyFile(file);
  const before = await readFile(file, "utf8");
  await expect(makeKeyFile(file)).rejects.toMatchObject({ code: "conflict", message: expect.stringContaining(file) });
  expect(await readFile(file, "utf8")).toBe(before);
});

test("the start that misses it says how it is made", async () => {
  const file = join(folder, "missing.key");
  await expect(openSecretKey({ file, create: false })).rejects.toThrow(`odp.js key ${file}`);
});

test("a rotated key file seals with a new key, opens with the former one, and keeps its mode and comments", async () => {
  const file = join(folder, "rotated.key");
  await makeKeyFile(file);
  await chmod(file, 0o640);
  await writeFile(file, `# of 2026\n${await readFile(file, "utf8")}`);
  const before = await openSecretKey({ file, create: false });
  const sealed = before.seal("s3cret", "c");
  const id = await rotateKeyFile(file);
  const after = await openSecretKey({ file, create: false });
  expect([after.keyId, after.ids]).toEqual([id, [id, before.keyId]]);
  expect(after.open(sealed, "c")).toBe("s3cret");
  expect((await stat(file)).mode & 0o777).toBe(0o640);
  expect(await readFile(file, "utf8")).toContain("# of 2026");
  expect((await readdir(folder)).filter((name) => name.startsWith("rotated"))).toEqual(["rotated.key"]);
});

test("a file that is no key file, or not there, is not rotated", async () => {
  const file = join(folder, "letter.txt");
  await writeFile(file, "Dear Sir");
  await expect(rotateKeyFile(file)).rejects.toMatchObject({ code: "invalid" });
  expect(await readFile(file, "utf8")).toBe("Dear Sir");
  await expect(rotateKeyFile(join(folder, "nowhere.key"))).rejects.toThrow("ENOENT");
});

const key = (id: string, sealed: Record<string, number> = {}) => {
  const total = Object.values(sealed).reduce((sum, count) => sum + count, 0);
  return { id, listed: true, opens: true, sealed, total };
};
const settled: KeyStatus = {
  source: "file",
  file: "/etc/odp/secret.key",
  wanted: "new1",
  sealing: "new1",
  keys: [key("new1", { hosts: 3, authority: 1 }), key("old1")],
  left: 0,
  ending: 0,
  deletedTenants: [],
  controllers: [{ id: "c1", url: "http://c1:8080", sealing: "new1", opening: ["new1", "old1"] }],
};
const under: KeyStatus = {
  ...settled,
  keys: [key("new1", { hosts: 1 }), key("old1", { hosts: 2 })],
  left: 2,
};
const stuck: KeyStatus = {
  ...under,
  sealing: "old1",
  controllers: [{ id: "c2", url: "", sealing: "old1", opening: ["old1"] }],
  waiting: "The controller c2 does not have the key new1.",
};

test("the status of keys says what needs which key, which controller lacks one, and what may be taken away", () => {
  expect(keyText(settled)).toBe(
    [
      "Keys come from /etc/odp/secret.key.",
      "  new1 (first): needed by 3 hosts, 1 authority",
      "  old1: needed by nothing",
      "  controller c1 (http://c1:8080): seals with new1",
      "No longer needed: old1. Keep them with the backups of their time.",
      "Everything is sealed with the first key.",
      "",
    ].join("\n"),
  );
  expect(keyText(under)).toContain("2 things are to be sealed anew with new1.");
  expect(keyText(stuck)).toContain("controller c2: seals with old1, DOES NOT HAVE new1");
  expect(keyText(stuck)).toContain("IN THE WAY: The controller c2 does not have the key new1.");
  expect(keyText({ ...settled, deletedTenants: ["acme"] })).toContain("except by deleted tenants");
});

test("the exit code of the status is 0 only when everything is sealed with the first key everywhere", () => {
  expect([settled, under, stuck].map(exitCodeOfKeys)).toEqual([0, KEY_UNDER_WAY, KEY_STUCK]);
  expect(exitCodeOfKeys({ ...settled, controllers: [{ id: "c2", url: "", sealing: "old1" }] })).toBe(KEY_UNDER_WAY);
});
