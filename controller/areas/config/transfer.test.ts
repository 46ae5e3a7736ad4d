import { expect, test } from "vitest";
import type { AppError } from "../../../common/errors.ts";
import { CONFIG_FAULTS_MAX, CONFIG_IMPORT_MAX_BYTES, CONFIG_VALUE_MAX_BYTES } from "../../../common/limits.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import type { Principal } from "../permissions/index.ts";
import { fileOf } from "./file.ts";
import { ConfigImport } from "./import.ts";
import { MASK } from "./rights.ts";
import { sealContext } from "./stored.ts";
import {
  admin,
  uploads,
  world,
  config,
  base,
  useConfigTransfer,
  signal,
  imported,
  many,
  valuesUnder,
} from "../../../test/helpers/areas/config-transfer.ts";

useConfigTransfer();

async function exported(key: string, relative = false, by: Principal = admin): Promise<string> {
  let text = "";
  for await (const piece of fileOf(await config.exported(by, key, signal), { key, relative })) text += piece;
  return text;
}

test("what is exported, imported and exported again is the same file, at its place and elsewhere", async () => {
  for (const [key, value] of [
    ["a", "plain"],
    ["a/b", 'quotes " and \\ and 二\nlines'],
    ["a-b", ""],
    ["z/ttl", "ends"],
    ["z/secret", "hunter2"],
  ] as const)
    await config.set(admin, {
      key: `${base}/${key}`,
      value,
      ...(key === "z/ttl" && { ttlSeconds: 1_000 }),
      ...(key === "z/secret" && { secret: true }),
    });
  const whole = await exported(base);
  expect(JSON.parse(whole)).toMatchObject([
    { key: `${base}/a` },
    { key: `${base}/a-b` },
    { key: `${base}/a/b` },
    { key: `${base}/z/secret`, value: MASK, secret: true },
    { key: `${base}/z/ttl`, expires: expect.stringMatching(/Z$/) as string },
  ]);
  expect(await imported(whole)).toMatchObject({ total: 5, unchanged: 5, created: 0, updated: 0 });
  await config.set(admin, { key: `${base}/a`, value: "changed" });
  await config.remove(admin, `${base}/a/b`);
  expect(await imported(whole)).toMatchObject({ created: 1, updated: 1, unchanged: 3 });
  expect(await exported(base)).toBe(whole);
  const secret = await world.entries.get("matrix", `${base}/z/secret`);
  expect(world.secrets.open(secret?.sealed ?? "", sealContext("matrix", `${base}/z/secret`))).toBe("hunter2");

  const relative = await exported(base, true);
  const { skipped, warnings } = await imported(relative, { key: `${base}-copy` });
  expect([skipped, warnings]).toEqual([
    1,
    [expect.stringContaining("z/secret is a secret that the file does not hold")],
  ]);
  const kept = JSON.parse(relative) as readonly { secret?: boolean }[];
  expect(JSON.parse(await exported(`${base}-copy`, true))).toEqual(kept.filter(({ secret: isSecret }) => !isSecret));
  expect(await exported("/matrix/nothing").catch((error: unknown) => error)).toMatchObject({ code: "not_found" });
});

test("nodes, as a client read them from the tree, are imported too", async () => {
  await config.set(admin, { key: `${base}/from/a`, value: "1" });
  await config.set(admin, { key: `${base}/from/a/b`, value: "2", ttlSeconds: 500 });
  const tree = await config.tree(admin, `${base}/from`);
  await config.remove(admin, `${base}/from`);
  expect(await imported(tree)).toMatchObject({ created: 2 });
  expect(await config.tree(admin, `${base}/from`)).toEqual(tree);
});

test("entries that do not lie below the given key are placed below it, in place of their longest common folder", async () => {
  const [from, to] = [`${base}/from`, `${base}/to`];
  const placed = async (keys: readonly string[]) => {
    const file = keys.map((key, at) => ({ key, value: String(at) }));
    const { changes = [] } = await imported(file, { key: to, plan: true });
    return changes.map(({ key }) => key);
  };
  for (const [keys, expected] of [
    [[`${from}/a/b`], [`${to}/b`]],
    [
      [`${from}/a/b`, `${from}/a/c/d`],
      [`${to}/b`, `${to}/c/d`],
    ],
    // An entry that is also a folder is not its own folder.
    [
      [`${from}/a`, `${from}/a/b`],
      [`${to}/a`, `${to}/a/b`],
    ],
    // A common beginning of two names is no common folder.
    [
      [`${from}/ab/x`, `${from}/abc/x`],
      [`${to}/ab/x`, `${to}/abc/x`],
    ],
    [[`${to}-other/x`], [`${to}/x`]],
    // Keys of other tenants, with no common folder.
    [
      ["/ns/etc/x", "/other/y"],
      [`${to}/ns/etc/x`, `${to}/other/y`],
    ],
    [["//ns//etc/./x/"], [`${to}/x`]],
    // Relative keys, and keys at and below the target, stay where they are.
    [
      [to, `${to}/in`, `${from}/a/out`, "relative"],
      [to, `${to}/in`, `${to}/out`, `${to}/relative`],
    ],
  ] as const)
    expect(await placed(keys), keys.join()).toEqual(expected);
  await expect(placed([`${from}/a/x`, `${to}/x`])).rejects.toMatchObject({
    code: "invalid",
    message: expect.stringContaining(`entry 2: ${to}/x stands there twice`) as string,
  });
  await expect(placed(["/"])).rejects.toMatchObject({ code: "invalid" });

  const tree = {
    key: from,
    dir: true,
    nodes: [{ key: `${from}/a`, value: "1", nodes: [{ key: `${from}/a/b`, value: "2" }] }],
  };
  expect(await imported(tree, { key: to })).toMatchObject({ created: 2 });
  expect(JSON.parse(await exported(base))).toEqual([
    { key: `${to}/a`, value: "1" },
    { key: `${to}/a/b`, value: "2" },
  ]);
  expect(await imported(await exported(to), { key: to })).toMatchObject({ unchanged: 2, created: 0 });
});

test("a plan tells what would be done and does nothing", async () => {
  await config.set(admin, { key: `${base}/there`, value: "old" });
  const file = [
    { key: `${base}/new`, value: "n" },
    { key: `${base}/there`, value: "new" },
    { key: `${base}/gone`, value: "x", expires: "2001-01-01T00:00:00Z" },
  ];
  const report = { total: 3, created: 1, updated: 1, skipped: 1, unchanged: 0 };
  expect(await imported(file, { plan: true })).toMatchObject({
    ...report,
    changes: [
      { key: `${base}/new`, action: "create" },
      { key: `${base}/there`, action: "update" },
      { key: `${base}/gone`, action: "skip" },
    ],
  });
  expect(await valuesUnder(base)).toEqual(["old"]);
  expect(await imported(file)).toMatchObject(report);
  expect(await valuesUnder(base)).toEqual(["n", "new"]);
});

test("an import with a fault anywhere imports nothing, and tells the faults together", async () => {
  const good = { key: `${base}/good`, value: "x" };
  const faulty: readonly (readonly [unknown, RegExp])[] = [
    ["no json", /Not valid JSON/],
    ["{", /Not valid JSON/],
    ["5", /JSON list/],
    [[good, 5], /JSON list/],
    [[good, { value: "x" }, { key: `${base}/b` }], /entry 2: It has no key[^]*entry 3: .* has no value/],
    [[good, good], /stands there twice/],
    [[good, { key: "relative", value: "x" }], /no key is given/],
    [[good, { key: "/second/x", value: "x" }], /begins with \/matrix\//],
    [[good, { key: `${base}/../../../x`, value: "x" }], /leaves its folder/],
    [[good, { key: `${base}/t`, value: "x", ttl: "soon" }], /whole number of seconds/],
    [[good, { key: `${base}/t`, value: "x", expires: "soon" }], /ISO 8601/],
    [[good, { key: `${base}/t`, value: "x", secret: "yes" }], /neither true nor false/],
    [[good, { key: `${base}/t`, value: { a: 1 } }], /has no value/],
    [[good, { key: `${base}/t`, value: "x".repeat(CONFIG_VALUE_MAX_BYTES + 1) }], /at most/],
    [[good, { key: "/matrix/rules/imported", value: "--parser=xml\n" }], /imported: .*parser/],
    [`${"[".repeat(200)}${"]".repeat(200)}`, /nested deeper/],
  ];
  for (const [file, message] of faulty)
    await expect(imported(file), String(message)).rejects.toMatchObject({
      message: expect.stringMatching(message) as string,
    });
  await expect(imported([good], { by: testPrincipal("viewer") })).rejects.toMatchObject({ code: "denied" });
  await expect(config.tree(admin, base)).rejects.toMatchObject({ code: "not_found" });
  const allFaulty = await imported(many(1_000).map(({ key }) => ({ key }))).catch(
    (error: unknown) => error as AppError,
  );
  expect(String(allFaulty).split("\n").length).toBe(CONFIG_FAULTS_MAX + 1);
  const { path } = await uploads.upload("huge.json", Buffer.from("[]"));
  const huge = { path, size: CONFIG_IMPORT_MAX_BYTES + 1, plan: false };
  await expect(new ConfigImport(world).run(admin, huge)).rejects.toMatchObject({ code: "too_large" });
});

test("a member that would reach a prototype does no harm", async () => {
  await imported(
    `[{"key":"${base}/__proto__","value":"a"},{"key":"${base}/b","value":"b","__proto__":{"secret":true}}]`,
  );
  expect(await config.tree(admin, base)).toEqual({
    key: base,
    dir: true,
    nodes: [
      { key: `${base}/__proto__`, value: "a" },
      { key: `${base}/b`, value: "b" },
    ],
  });
});
