import { dictionary } from "@zxcvbn-ts/language-common";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PASSWORD_MIN_CHARACTERS, RECOVERY_CODE_BYTES, SECOND_FACTOR_SECRET_BYTES } from "../../common/limits.ts";
import { passwordPolicy } from "../../controller/areas/users/credentials/password-policy.ts";
import { realClock } from "../helpers/time/clock.ts";
import { openTestHttp, type TestHttp } from "../helpers/http/http-app.ts";
import { TestClock, testPrincipal, testRuntime } from "../helpers/time/runtime.ts";
import { TIMES } from "../helpers/time/times.ts";

/** Every run tries the `COMMONEST` first passwords and one in `SHARE` of the others; `npm run soak` tries all. */
const COMMONEST = 300;
const SHARE = 6;

let http: TestHttp;
let clock: TestClock;
beforeAll(async () => {
  clock = new TestClock(realClock.nowMs());
  http = await openTestHttp({ runtime: testRuntime(clock) });
});
afterAll(() => http[Symbol.asyncDispose]());

const LONG = ` ${"Long words, 長い言葉 and %41+& signs ".repeat(3)} `;
const rights = { role: "viewer" } as const;

async function signedIn(username: string, password: string): Promise<string> {
  const payload = { company: "matrix", username, password };
  return (await http.app.inject({ method: "POST", url: "/user/signin", payload })).json<{ status: string }>().status;
}

test("a password of more than 64 characters counts to its last one, as it was typed", async () => {
  expect([...LONG].length).toBeGreaterThan(64);
  await http.users.create(testPrincipal(), { username: "long", password: LONG, rights });
  expect(await signedIn("long", LONG)).toBe("ok");
  for (const other of [LONG.trim(), LONG.slice(0, -1), LONG.toLowerCase(), LONG.replace("%41", "A")])
    expect(await signedIn("long", other), other).toBe("error");
});

test("a password has no end", async () => {
  const password = "stays as long as it is good";
  await http.users.create(testPrincipal(), { username: "lasting", password, rights });
  clock.advance(10 * 366 * 24 * 3_600_000);
  expect(await signedIn("lasting", password)).toBe("ok");
});

test("the names of the user and of the company do not make a password", async () => {
  for (const password of ["quintessa", "quintessa1", "matrixmatrix", "Quintessa2026"])
    await expect(
      http.users.create(testPrincipal(), { username: "quintessa", password, rights }),
      password,
    ).rejects.toMatchObject({ code: "invalid", message: expect.stringContaining("easy to guess") });
});

test("none of the 3,000 commonest passwords that are long enough is taken, in whatever letters", () => {
  const fault = passwordPolicy([]);
  const commonest = dictionary["passwords-common"]
    .filter((one) => one.length >= PASSWORD_MIN_CHARACTERS)
    .slice(0, 3_000);
  expect(commonest).toHaveLength(3_000);
  const tried = commonest.filter((_, at) => TIMES > 1 || at < COMMONEST || at % SHARE === 0);
  expect(tried.filter((password) => fault(password) === "")).toEqual([]);
  expect(commonest.slice(0, 100).filter((password) => fault(password.toUpperCase()) === "")).toEqual([]);
});

test("words of an installation do not make a password there", async () => {
  await using other = await openTestHttp({ passwordWords: ["Zwickelburg", "halle nord"] });
  const create = (service: TestHttp, password: string) =>
    service.users.create(testPrincipal(), { username: "words", password, rights });
  for (const password of ["zwickelburg", "Zwickelburg1", "halle nord"])
    await expect(create(other, password), password).rejects.toMatchObject({ code: "invalid" });
  const session = await other.signIn("viewer");
  const check = { method: "POST", url: "/user/vali_password", payload: "zwickelburg" } as const;
  expect(await other.call(session, check)).toMatchObject({ message: expect.stringContaining("easy to guess") });
  expect(await create(http, "zwickelburg")).toMatchObject({ username: "words" });
});

test("seeds and recovery codes have the bits that no digest of them gives away", () => {
  expect(RECOVERY_CODE_BYTES * 8).toBeGreaterThanOrEqual(128);
  expect(SECOND_FACTOR_SECRET_BYTES * 8).toBeGreaterThanOrEqual(128);
});
