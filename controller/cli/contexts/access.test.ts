import { chmod, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { accessOf, tenantOf } from "./access.ts";
import { ContextFile, contextsPath } from "./file.ts";

const WORK = { url: "https://work.example", user: "acme.ana", session: "s1" };
const HOME = { url: "https://home.example", user: "matrix.admin", token: "t1" };

let folder: string;
let file: ContextFile;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "odp-contexts-"));
  file = new ContextFile(contextsPath({ XDG_CONFIG_HOME: folder }, "/nowhere"), "linux");
});
afterEach(() => rm(folder, { recursive: true }));

test("contexts are in a file that only its owner reads, in a folder that only its owner lists", async () => {
  await file.add("work", WORK);
  await file.add("home", HOME);
  expect(file.path).toBe(join(folder, "odp/contexts.json"));
  expect([(await stat(file.path)).mode & 0o777, (await stat(join(folder, "odp"))).mode & 0o777]).toEqual([
    0o600, 0o700,
  ]);
  expect(await file.load()).toEqual({ current: "home", contexts: { work: WORK, home: HOME } });
  await file.use("work");
  await file.remove("work");
  expect(await file.load()).toEqual({ current: undefined, contexts: { home: HOME } });
});

test("a file that others may read is refused, and so is a damaged one: each error says what to do", async () => {
  await file.add("work", WORK);
  await chmod(file.path, 0o640);
  await expect(file.load()).rejects.toMatchObject({ code: "denied", message: expect.stringContaining("chmod 600") });
  await chmod(file.path, 0o600);
  for (const text of ["", "{", '{"format":2,"contexts":{}}']) {
    await writeFile(file.path, text);
    await expect(file.load()).rejects.toMatchObject({ code: "invalid", message: expect.stringContaining("odp login") });
  }
  expect(await readFile(file.path, "utf8")).toBe('{"format":2,"contexts":{}}');
});

test("an unknown context is an error with the nearest name, and __proto__ is none", async () => {
  await file.add("work", WORK);
  await expect(file.named("wrk")).rejects.toThrow("There is no context wrk; did you mean work?");
  await expect(file.named("__proto__")).rejects.toMatchObject({ code: "not_found" });
  await expect(file.add("a b", WORK)).rejects.toMatchObject({ code: "invalid" });
});

test("the command line wins over credentials of the environment, and these over contexts", async () => {
  await file.add("home", HOME);
  await file.add("work", WORK);
  const of = async (words: object, env: Record<string, string>) => {
    const { url, user, credentials } = await accessOf(words, env, file);
    return { url, user, ...credentials };
  };
  const password = { ODP_PASSWORD: "p", ODP_URL: "http://one.example" };
  expect(await of({}, {})).toEqual({ url: WORK.url, user: "acme.ana", session: "s1" });
  expect(await of({}, { ODP_CONTEXT: "home" })).toEqual({ url: HOME.url, user: "matrix.admin", token: "t1" });
  expect(await of({}, { ...password, ODP_CONTEXT: "home" })).toMatchObject({
    url: "http://one.example",
    password: "p",
  });
  expect(await of({ user: "acme.bo" }, password)).toMatchObject({ user: "acme.bo", password: "p" });
  expect(await of({}, { ODP_TOKEN: "t2" })).toEqual({ url: "http://127.0.0.1:8080", user: undefined, token: "t2" });
  expect(await of({ context: "home" }, password)).toMatchObject({ url: HOME.url, token: "t1" });
});

test("what cannot be meant is refused before any call", async () => {
  const refused = (words: object, env: Record<string, string>) => accessOf(words, env, file);
  await expect(refused({}, {})).rejects.toThrow("Run: odp login");
  await expect(refused({ url: "http://x" }, {})).rejects.toThrow("no credentials");
  await expect(refused({ context: "a", url: "http://x" }, {})).rejects.toThrow("leave out --url");
  await expect(refused({}, { ODP_TOKEN: "t", ODP_PASSWORD: "p" })).rejects.toThrow("Set one of");
  expect(() => tenantOf({ url: "", user: undefined, credentials: {}, context: undefined })).toThrow("ODP_USER");
});
