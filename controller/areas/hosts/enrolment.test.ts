import { X509Certificate } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createKeyPem, createRequest } from "../../../agent/identity/csr.ts";
import { parseJoinToken } from "../../../common/agent/enrolment.ts";
import { JOIN_TOKEN_REPEAT_MS } from "../../../common/limits.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { answerProven, enrolRequest, openTestHosts, type TestHosts } from "../../../test/helpers/hosts/hosts.ts";
import { secretBox } from "../../secrets/index.ts";
import { Authority } from "./authority/authority.ts";

let test: TestHosts;
let aheadMs = 0;
beforeAll(async () => {
  const plain = await openTestHosts();
  await plain[Symbol.asyncDispose]();
  const clock = { ...realClock, nowMs: () => realClock.nowMs() + aheadMs };
  test = await openTestHosts({ runtime: { ...plain.runtime, clock } });
});
afterAll(() => test[Symbol.asyncDispose]());

const admin = () => test.principal();
const csrOf = (name: string) => createRequest(createKeyPem(), name);

describe("enrolment", () => {
  it("gives the holder of a token a short-lived certificate for its host, and proves itself", async () => {
    const { token, expires } = await test.hosts.tokens.create(admin(), { host: "web-1", minutes: 5 });
    expect(expires - Date.now()).toBeLessThanOrEqual(300_000);
    const answer = await test.hosts.agents.enrol(enrolRequest(token, csrOf("whatever")));
    expect(answer).toMatchObject({
      host: "web-1",
      tenant: "matrix",
      agentPort: test.agentPort,
      controllers: [`localhost:${test.agentPort}`],
    });
    expect(answerProven(token, answer)).toBe(true);
    const certificate = new X509Certificate(Buffer.from(answer.certificate, "base64"));
    const authority = new X509Certificate(Buffer.from(answer.authorities[0] ?? "", "base64"));
    expect(certificate.verify(authority.publicKey)).toBe(true);
    expect(certificate.subjectAltName).toBe("URI:odp://matrix/web-1");
    expect(Date.parse(certificate.validTo) - Date.now()).toBeLessThanOrEqual(24 * 3_600_000);
    expect(await test.hosts.get(admin(), "web-1")).toMatchObject({ isagent: 1, status: "offline" });
  });

  it("proves all it answers: who changes a member on the way makes the proof wrong", async () => {
    const { token } = await test.hosts.tokens.create(admin(), { host: "changed" });
    const answer = await test.hosts.agents.enrol(enrolRequest(token, csrOf("changed")));
    const changes = [
      { certificate: "" },
      { authorities: [] },
      { controllers: ["elsewhere:1"] },
      { agentPort: 1 },
      { host: "other" },
      { tenant: "second" },
    ];
    for (const change of changes)
      expect({ change, proven: answerProven(token, { ...answer, ...change }) }).toEqual({ change, proven: false });
  });

  it("keeps nothing in the store that would make a token or the authority's key", async () => {
    const { token } = await test.hosts.tokens.create(admin(), {});
    const { secret } = parseJoinToken(token);
    const { kv } = await test.engine.system();
    const { entries } = await kv.list("");
    const stored = entries.map((entry) => Buffer.from(entry.value).toString("utf8")).join("\n");
    expect(stored).toContain("sealed1.");
    expect(stored).not.toContain(secret);
    expect(stored).not.toMatch(/PRIVATE KEY/);
  });

  it("refuses an agent that was given another name than the token, which stays good", async () => {
    const { token } = await test.hosts.tokens.create(admin(), { host: "named-1" });
    const other = { ...enrolRequest(token, csrOf("named-2")), named: true };
    await expect(test.hosts.agents.enrol(other)).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringMatching(/for the host named-1, but the agent is named named-2/),
    });
    const right = { ...enrolRequest(token, csrOf("named-1")), named: true };
    expect((await test.hosts.agents.enrol(right)).host).toBe("named-1");
  });

  it("takes the host's own name when the token names none, but never an enrolled host's", async () => {
    const first = await test.hosts.tokens.create(admin(), {});
    expect((await test.hosts.agents.enrol(enrolRequest(first.token, csrOf("fresh-1")))).host).toBe("fresh-1");
    const second = await test.hosts.tokens.create(admin(), {});
    const again = test.hosts.agents.enrol(enrolRequest(second.token, csrOf("fresh-1")));
    await expect(again).rejects.toMatchObject({
      code: "conflict",
      message: "The host fresh-1 is enrolled already: ask for a token that names it.",
    });
    expect((await test.hosts.agents.enrol(enrolRequest(second.token, csrOf("fresh-2")))).host).toBe("fresh-2");
    const third = await test.hosts.tokens.create(admin(), {});
    await expect(test.hosts.agents.enrol(enrolRequest(third.token, csrOf("../x")))).rejects.toMatchObject({
      code: "invalid",
    });
  });

  it("serves one request: of many at once one wins, the others are told why", async () => {
    const { token } = await test.hosts.tokens.create(admin(), { host: "raced" });
    const tries = await Promise.allSettled(
      Array.from({ length: 6 }, () => test.hosts.agents.enrol(enrolRequest(token, csrOf("raced")))),
    );
    expect(tries.filter((one) => one.status === "fulfilled")).toHaveLength(1);
    for (const one of tries) {
      if (one.status === "rejected")
        expect(one.reason).toMatchObject({
          code: "conflict",
          message: "The join token was used already: ask for a new one.",
        });
    }
  });

  it("answers the same request again with the same certificate, for a while", async () => {
    const { token } = await test.hosts.tokens.create(admin(), { host: "lost-answer" });
    const request = enrolRequest(token, csrOf("lost-answer"));
    const answers = await Promise.all([test.hosts.agents.enrol(request), test.hosts.agents.enrol(request)]);
    expect(answers[0]?.certificate).toBe(answers[1]?.certificate);
    expect((await test.hosts.agents.enrol(request)).certificate).toBe(answers[0]?.certificate);
    aheadMs = JOIN_TOKEN_REPEAT_MS + 1;
    await expect(test.hosts.agents.enrol(request)).rejects.toMatchObject({ code: "conflict" });
    aheadMs = 0;
  });

  it("refuses a token that expired, one that nobody made, and a proof by another secret", async () => {
    const { token } = await test.hosts.tokens.create(admin(), { host: "late", minutes: 1 });
    aheadMs = 61_000;
    await expect(test.hosts.agents.enrol(enrolRequest(token, csrOf("late")))).rejects.toMatchObject({
      code: "denied",
      message: "The join token has expired: ask for a new one.",
    });
    aheadMs = 0;
    const made = token.slice(0, -5) + "AAAAA";
    await expect(test.hosts.agents.enrol(enrolRequest(made, csrOf("late")))).rejects.toMatchObject({
      code: "denied",
      message: "The join token is wrong.",
    });
    await expect(test.hosts.agents.enrol({ id: "../../authority/ca", csr: "", proof: "" })).rejects.toMatchObject({
      code: "denied",
    });
  });

  it("keeps a token, used or not, until its last request may be answered no more", async () => {
    const { token, expires } = await test.hosts.tokens.create(admin(), { host: "kept", minutes: 1 });
    const { kv } = await test.engine.system();
    const keptUntil = async () => (await kv.get(`enrolment/tokens/${parseJoinToken(token).id}`))?.expiresAtMs;
    expect(await keptUntil()).toBe(expires + JOIN_TOKEN_REPEAT_MS);
    await test.hosts.agents.enrol(enrolRequest(token, csrOf("kept")));
    expect(await keptUntil()).toBe(expires + JOIN_TOKEN_REPEAT_MS);
  });

  it("refuses a request that is not signed with its own key, or is none, and leaves the token good", async () => {
    const { token } = await test.hosts.tokens.create(admin(), { host: "forged" });
    const csr = csrOf("forged");
    const forged = Buffer.from(csr);
    forged[forged.length - 1] = (forged.at(-1) ?? 0) ^ 1;
    await expect(test.hosts.agents.enrol(enrolRequest(token, forged))).rejects.toThrow(
      /not signed with its own key|cannot be read/,
    );
    await expect(test.hosts.agents.enrol(enrolRequest(token, Buffer.from("hello")))).rejects.toThrow(/cannot be read/);
    expect((await test.hosts.agents.enrol(enrolRequest(token, csr))).host).toBe("forged");
  });

  it("is for those who may write hosts", async () => {
    const viewer = test.principal("matrix", "viewer");
    await expect(test.hosts.tokens.create(viewer, {})).rejects.toMatchObject({ code: "denied" });
  });
});

describe("authority", () => {
  it("is one, also when several controllers make it at once", async () => {
    const { kv } = await test.engine.tenant("second");
    const open = () =>
      Authority.open({ kv, secrets: secretBox([Buffer.alloc(32, 9)]), runtime: test.runtime, agentLifetimeMs: 1_000 });
    const all = await Promise.all([open(), open(), open(), open()]);
    const digests = new Set(
      [...all, await open()].map(({ certificates }) => Buffer.from(certificates[0] ?? "").toString("base64")),
    );
    expect(digests.size).toBe(1);
  });
});
