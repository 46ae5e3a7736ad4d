import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createKeyPem, createRequest } from "../../../agent/identity/csr.ts";
import { openTestHttp, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { answerProven, enrolRequest, openTestHosts, type TestHosts } from "../../../test/helpers/hosts/hosts.ts";
import type { EnrolAnswer } from "../../../common/agent/enrolment.ts";
import { hostRoutes } from "./routes.ts";

let test: TestHosts;
let http: TestHttp;
let admin = "";
let viewer = "";
beforeAll(async () => {
  test = await openTestHosts();
  http = await openTestHttp({ endpoints: hostRoutes(test.hosts) });
  admin = await http.signIn("admin");
  viewer = await http.signIn("viewer");
});
afterAll(async () => {
  await http[Symbol.asyncDispose]();
  await test[Symbol.asyncDispose]();
});

const post = (session: string, url: string, body: unknown, type = "application/json") =>
  http.call(session, {
    method: "POST",
    url,
    payload: typeof body === "string" ? body : JSON.stringify(body),
    headers: { "content-type": type },
  });

describe("the HTTP interface of hosts", () => {
  it("takes, shows, lists and removes a host, whatever the content type of its JSON", async () => {
    const body = {
      host: "web-1",
      iplist: ["10.0.0.1"],
      isagent: 1,
      hostgroups: ["g"],
      config: { username: "root", password: "hunter2", port: "22" },
      unknown: true,
    };
    expect(await post(admin, "/host", body, "text/plain;charset=UTF-8")).toMatchObject({
      status: "ok",
      message: { host: "web-1", isagent: 1 },
    });
    const shown = await http.call(viewer, { method: "GET", url: "/host/web-1" });
    expect(shown).toMatchObject({
      status: "ok",
      message: { config: { username: "root", password: "******", port: "22" }, hostgroups: ["g"] },
    });
    await post(admin, "/host", { host: "web-2", tags: ["linux"] });
    expect(await http.call(viewer, { method: "GET", url: "/host?tag=linux&status=false&foo=1" })).toMatchObject({
      message: [{ host: "web-2" }],
    });
    expect(await http.call(viewer, { method: "GET", url: "/host?status=true" })).toMatchObject({
      status: "ok",
      message: [],
    });
    expect(await http.call(admin, { method: "DELETE", url: "/host/web-1" })).toMatchObject({
      status: "ok",
      message: "",
    });
    expect(await http.call(admin, { method: "GET", url: "/host/web-1" })).toMatchObject({
      status: "error",
      code: "not_found",
    });
  });

  it("says what is wrong, and whose right is missing", async () => {
    expect(await post(admin, "/host", { iplist: ["10.0.0.1"] })).toMatchObject({
      status: "error",
      code: "invalid",
      message: expect.stringContaining("host"),
    });
    expect(await post(admin, "/host", { host: "x", isagent: 7 })).toMatchObject({
      status: "error",
      code: "invalid",
      message: expect.stringContaining("isagent"),
    });
    expect(await post(viewer, "/host", { host: "x" })).toMatchObject({ status: "error", code: "denied" });
    expect(await post(viewer, "/agent/token", {})).toMatchObject({ status: "error", code: "denied" });
    expect(await http.call("", { method: "GET", url: "/host" })).toMatchObject({ status: "signin" });
  });

  it("tells in its answer which stored credentials a change took away", async () => {
    await post(admin, "/host", {
      host: "moving",
      config: { username: "root", password: "hunter2", address: "10.0.0.1" },
    });
    const moved = await post(admin, "/host", { host: "moving", config: { address: "10.6.6.6" } });
    expect(JSON.stringify(moved)).toContain("The stored password of moving belonged to where SSH led before");
    expect(moved).toMatchObject({ status: "ok", message: { config: { address: "10.6.6.6", username: "root" } } });
    expect(moved.message).not.toHaveProperty("config.password");
  });

  it("lists join tokens without their secrets, and revokes one", async () => {
    const made = await post(admin, "/agent/token", { host: "listed" });
    const { token, id } = made.message as { token: string; id: string };
    const list = await http.call(admin, { method: "GET", url: "/agent/token" });
    expect(list.message).toContainEqual({
      ...{ id, host: "listed", user: "admin", used: 0, usedBy: "" },
      expires: expect.any(Number),
    });
    expect(JSON.stringify(list)).not.toContain(token.split(".")[2]);
    expect(await http.call(viewer, { method: "GET", url: "/agent/token" })).toMatchObject({ code: "denied" });
    expect(await http.call(viewer, { method: "DELETE", url: `/agent/token/${id}` })).toMatchObject({ code: "denied" });
    expect(await http.call(admin, { method: "DELETE", url: `/agent/token/${id}` })).toMatchObject({ status: "ok" });
    expect(await http.call(admin, { method: "DELETE", url: `/agent/token/${id}` })).toMatchObject({
      code: "not_found",
    });
    const late = await post("", "/agent/enrol", enrolRequest(token, createRequest(createKeyPem(), "listed")));
    expect(late).toMatchObject({ code: "denied", message: expect.stringContaining("was revoked") });
  });

  it("enrols whoever holds a token, without a sign-in", async () => {
    const made = await post(admin, "/agent/token", { host: "joined", minutes: 10 });
    const { token } = made.message as { token: string; expires: number };
    const request = enrolRequest(token, createRequest(createKeyPem(), "joined"));
    const answer = await post("", "/agent/enrol", request);
    expect(answer).toMatchObject({ status: "ok", message: { host: "joined", tenant: "matrix" } });
    expect(answerProven(token, answer.message as EnrolAnswer)).toBe(true);
    const used = await post("", "/agent/enrol", enrolRequest(token, createRequest(createKeyPem(), "joined")));
    expect(used).toMatchObject({
      status: "error",
      code: "conflict",
      message: "The join token was used already: ask for a new one.",
    });
    expect(await post("", "/agent/enrol", { id: 5 })).toMatchObject({ status: "error", code: "invalid" });
  });
});
