import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createPrivateKey, sign } from "node:crypto";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { LICENCE_MAX_BYTES } from "../../../common/limits.ts";
import { makeKeys, makeLicence, type LicenceWish } from "../../../deploy/licence/make.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { TestClock, testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { AppError } from "../../../common/errors.ts";
import { LicenceService } from "./service.ts";

const DAY_MS = 24 * 3_600_000;
const admin = testPrincipal();
const keys = makeKeys();

let engine: TestEngine;
let clock: TestClock;
let counts: { agents: number; servers: number };
beforeEach(async () => {
  engine = await openTestEngine();
  clock = new TestClock(Date.now());
  counts = { agents: 0, servers: 0 };
});
afterEach(() => engine[Symbol.asyncDispose]());

function service(publicKeys: readonly string[] = [keys.publicKey]): LicenceService {
  return new LicenceService({
    stores: engine,
    runtime: testRuntime(clock),
    keys: publicKeys,
    isFirst: (tenant) => Promise.resolve(tenant === "matrix"),
    requireTenant: (tenant) =>
      ["matrix", "second"].includes(tenant)
        ? Promise.resolve()
        : Promise.reject(new AppError("not_found", `There is no tenant ${tenant}.`)),
    hosts: { agents: () => Promise.resolve(counts.agents), servers: () => Promise.resolve(counts.servers) },
  });
}

function licence(wish: Partial<LicenceWish> = {}, key = keys.privateKey): string {
  return makeLicence({ tenant: "second", serial: 1, expire: -1, server: 20, agent: 10, ...wish }, key);
}

/** A document of any payload, with a valid signature. */
function signed(payload: string): string {
  const text = `odp-licence-1.${Buffer.from(payload).toString("base64url")}`;
  return `${text}.${sign(null, Buffer.from(text), createPrivateKey(keys.privateKey)).toString("base64url")}`;
}

test("without an imported licence there is no limit", async () => {
  const licences = service();
  expect((await licences.info(admin, "second")).licence).toEqual({ name: "second", expire: -1, server: -1, agent: -1 });
  expect(await licences.shownOf("second")).toBe(`{"expire":-1,"server":-1,"agent":-1}`);
  expect(await licences.limits("second")).toEqual({ agents: Infinity, servers: Infinity });
});

test("an imported one holds for the tenant it names, on every controller; a newer one takes its place", async () => {
  const expire = clock.nowMs() + 90 * DAY_MS;
  const { licence: shown, warnings } = await service().importDocument(admin, licence({ expire }));
  expect([shown, warnings]).toEqual([{ name: "second", expire, server: 20, agent: 10, serial: 1 }, []]);
  const other = service();
  expect(await other.limits("second")).toEqual({ agents: 10, servers: 20 });
  expect(await other.limits("matrix")).toEqual({ agents: Infinity, servers: Infinity });
  await other.importDocument(admin, licence({ expire }));
  await other.importDocument(admin, licence({ serial: 2, agent: -1 }));
  expect(await service().limits("second")).toEqual({ agents: Infinity, servers: 20 });
});

test("only administrators of the first tenant import, others see their own", async () => {
  const licences = service();
  for (const user of [testPrincipal("administrator", "second"), testPrincipal("viewer")])
    await expect(licences.importDocument(user, licence())).rejects.toMatchObject({ code: "denied" });
  expect(await licences.info(testPrincipal("viewer", "second"), "second")).toMatchObject({ licence: { agent: -1 } });
  await expect(licences.info(testPrincipal("administrator", "second"), "matrix")).rejects.toMatchObject({
    code: "not_found",
  });
  await expect(licences.info(admin, "nowhere")).rejects.toMatchObject({ code: "not_found" });
});

describe("a document is refused", () => {
  const nested = `${"[".repeat(6_000)}${"]".repeat(6_000)}`;
  const cases: readonly (readonly [what: string, text: () => string, code: string])[] = [
    ["that is empty", () => "", "invalid"],
    ["that is huge", () => "x".repeat(LICENCE_MAX_BYTES + 1), "too_large"],
    ["that is nested", () => signed(nested), "invalid"],
    ["that is no object", () => signed("null"), "invalid"],
    ["that is no JSON", () => signed("{"), "invalid"],
    ["that was signed by another", () => licence({}, makeKeys().privateKey), "denied"],
    [
      "whose payload was changed",
      () => licence().replace(/\.(.)/, (_, first: string) => `.${first === "e" ? "f" : "e"}`),
      "denied",
    ],
    [
      "with the signature of another document",
      () => licence().replace(/[^.]+$/, licence({ agent: 99 }).split(".")[2] ?? ""),
      "denied",
    ],
    ["that has ended", () => licence({ expire: 1 }), "invalid"],
    ["of a tenant that is not there", () => licence({ tenant: "nowhere" }), "not_found"],
    ["of no tenant", () => licence({ tenant: "../matrix" }), "invalid"],
    ["without a serial", () => licence({ serial: 0 }), "invalid"],
    ["with half an agent", () => licence({ agent: 0.5 }), "invalid"],
    ["with less than no limit", () => licence({ server: -2 }), "invalid"],
    [
      "with more than a number holds",
      () => signed(`{"tenant":"second","serial":1,"expire":1e400,"server":1,"agent":1}`),
      "invalid",
    ],
  ];
  test.each(cases)("%s", async (_what, text, code) => {
    const licences = service();
    await expect(licences.importDocument(admin, text())).rejects.toMatchObject({ code });
    expect(await licences.limits("second")).toEqual({ agents: Infinity, servers: Infinity });
  });

  test("that is older than the one there, or another one of its serial", async () => {
    const licences = service();
    await licences.importDocument(admin, licence({ serial: 2, agent: 1 }));
    for (const serial of [1, 2])
      await expect(licences.importDocument(admin, licence({ serial, agent: 99 }))).rejects.toMatchObject({
        code: "conflict",
      });
    expect(await licences.limits("second")).toMatchObject({ agents: 1 });
  });

  test("where the installation has no key", async () => {
    await expect(service([]).importDocument(admin, licence())).rejects.toMatchObject({ code: "unsupported" });
  });
});

test("of several imports at once the newest stands", async () => {
  await Promise.allSettled(
    [3, 1, 4, 2].map((serial) => service().importDocument(admin, licence({ serial, agent: serial }))),
  );
  await service().importDocument(admin, licence({ serial: 4, agent: 4 }));
  expect(await service().limits("second")).toMatchObject({ agents: 4 });
});

test("what ended, or was signed by a key that is gone, refuses new hosts and says so", async () => {
  const licences = service();
  await licences.importDocument(admin, licence({ expire: clock.nowMs() + DAY_MS }));
  counts = { agents: 9, servers: 21 };
  expect((await licences.info(admin, "second")).warnings).toEqual([
    expect.stringContaining("ends on"),
    "second has 9 of 10 hosts with an agent.",
    "second has 21 of 20 hosts.",
  ]);
  clock.advance(DAY_MS);
  await expect(licences.limits("second")).rejects.toMatchObject({
    code: "denied",
    message: expect.stringContaining("ended"),
  });
  expect((await licences.info(admin, "second")).warnings[0]).toContain("new hosts are refused");
  const rotated = service([makeKeys().publicKey]);
  await expect(rotated.limits("second")).rejects.toMatchObject({ code: "denied" });
  expect(await rotated.info(admin, "second")).toMatchObject({
    licence: { server: 0, agent: 0 },
    warnings: [expect.stringContaining("import it anew")],
  });
  expect(await service([makeKeys().publicKey, keys.publicKey]).info(admin, "second")).toMatchObject({
    licence: { agent: 10 },
  });
});

test("the tool makes keys and licences that are taken", async () => {
  const tool = (...words: readonly string[]) =>
    promisify(execFile)(process.execPath, ["--import", "tsx", "deploy/licence/main.ts", ...words]);
  const file = join(engine.dir, "licence.pem");
  const publicKey = (await tool("keys", file)).stdout.trim();
  const words = ["--key", file, "--tenant", "second", "--serial", "7", "--until", "2999-01-01", "--agents", "3"];
  const { stdout } = await tool("sign", ...words);
  const { licence: taken } = await service([publicKey]).importDocument(admin, stdout);
  expect(taken).toEqual({ name: "second", expire: Date.UTC(2999, 0, 1), server: -1, agent: 3, serial: 7 });
  await expect(tool("keys", file), "a key is never written over").rejects.toThrow();
  expect(await readFile(file, "utf8")).toContain("PRIVATE KEY");
});
