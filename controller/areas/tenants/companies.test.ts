import { expect, test } from "vitest";
import { TENANT_CALLS_IN_FLIGHT_MAX } from "../../../common/limits.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import type { Principal } from "../permissions/index.ts";
import { countQuotaOf } from "./quotas.ts";
import type { NewCompany } from "./types.ts";
import {
  admin,
  type Controller,
  useInstallations,
  begin,
  names,
  signsIn,
} from "../../../test/helpers/tenants/company-world.ts";

useInstallations();

test("a tenant is made whole: stores, name space, an administrator whose generated password is told once", async () => {
  const one = await (await begin()).controller("one");
  const { username, password = "" } = await one.companies.create(admin, {
    name: "third",
    fullname: "The Third",
    web: "https://third.example",
    icon: "data:image/png;base64,AAAA",
    config: { replication_factor: "1" },
  });
  expect([username, await signsIn(one, "third", password)]).toEqual(["admin", true]);
  expect(await one.companies.get(admin, "third")).toMatchObject({
    name: "third",
    fullname: "The Third",
    ospace: "/third",
    title: "The Third",
    web: "https://third.example",
    icon: "data:image/png;base64,AAAA",
    logo: "",
    config: { replication_factor: "1" },
    license: "{}",
  });
  expect(await names(one.companies.list(admin))).toEqual(["matrix", "third"]);
  await expect(one.companies.create(admin, { name: "third" })).rejects.toMatchObject({ code: "conflict" });
  const changed = await one.companies.update(admin, { name: "third", title: "3", icon: "", config: { color: "red" } });
  expect(changed).toMatchObject({ title: "3", fullname: "The Third", icon: "" });
  expect(changed.config).toEqual({ replication_factor: "1", color: "red" });
  for (const wrong of [{ ospace: "/other" }, { config: { replication_factor: "3" } }])
    await expect(one.companies.update(admin, { name: "third", ...wrong })).rejects.toMatchObject({
      code: expect.stringMatching(/^(conflict|unsupported)$/),
    });
});

test("administrators of other tenants see their own and manage none, users of few rights neither", async () => {
  const one = await (await begin()).controller("one");
  await one.tenants.ensureTenant({ name: "second", ospace: "/second" });
  for (const foreign of [testPrincipal("administrator", "second"), testPrincipal("viewer", "second")]) {
    expect(await names(one.companies.list(foreign))).toEqual(["second"]);
    expect(await one.companies.get(foreign, "second")).toMatchObject({ name: "second" });
    await expect(one.companies.get(foreign, "matrix")).rejects.toMatchObject({ code: "not_found" });
  }
  expect(await names(one.companies.list(testPrincipal("viewer")))).toEqual(["matrix"]);
  for (const user of [testPrincipal("administrator", "second"), testPrincipal("viewer")]) {
    for (const change of [
      () => one.companies.create(user, { name: "fourth" }),
      () => one.companies.update(user, { name: "second", title: "x" }),
      () => one.companies.remove(user, "second"),
      () => one.companies.restore(user, "second"),
    ])
      await expect(change()).rejects.toMatchObject({ code: "denied" });
  }
  await expect(one.companies.remove(admin, "matrix")).rejects.toMatchObject({ code: "conflict" });
});

test("nobody is told the password of an administrator who is none, by grants or by a part of them", async () => {
  const { companies } = await (await begin()).controller("a");
  const few: readonly Principal[] = [
    { ...admin, grants: ["tenants:*"], data: [] },
    { ...admin, paths: ["/home/few"] },
    { ...admin, grants: ["tenants:*"], byToken: "part" },
  ];
  for (const principal of few)
    await expect(companies.create(principal, { name: "made" })).rejects.toMatchObject({ code: "denied" });
  expect(await names(companies.list(admin))).toEqual(["matrix"]);
  await companies.create({ ...admin, byToken: "whole" }, { name: "made" });
  expect(await names(companies.list(admin))).toEqual(["made", "matrix"]);
});

test("members that cannot be kept are refused by name, and nothing is begun", async () => {
  const one = await (await begin()).controller("one");
  const huge = "x".repeat(2_000_000);
  const wishes: readonly NewCompany[] = [
    { name: "" },
    { name: "Upper" },
    { name: huge },
    { name: "../x" },
    { name: "third", ospace: "/a/b" },
    { name: "third", password: "third" },
    { name: "third", title: huge },
    { name: "third", title: "a\u0000b" },
    { name: "third", icon: huge },
    { name: "third", icon: "javascript:alert(1)" },
    { name: "third", config: { replication_factor: "many" } },
    { name: "third", config: { a: huge } },
  ];
  for (const wrong of wishes)
    await expect(one.companies.create(admin, wrong)).rejects.toMatchObject({
      code: expect.stringMatching(/^(invalid|too_large)$/),
    });
  expect(await names(one.companies.list(admin))).toEqual(["matrix"]);
});

test("quotas of agents and calls are made, changed and listed, reach every controller, and are refused by name", async () => {
  const own = await begin();
  const [one, two] = [await own.controller("one"), await own.controller("two")];
  const quotaOf = ({ gate }: Controller) => countQuotaOf(gate.configOf("third"));
  await one.companies.create(admin, { name: "third", config: { max_agents: "5", max_calls: "2" } });
  expect(await one.companies.get(admin, "third")).toMatchObject({ config: { max_agents: "5", max_calls: "2" } });
  for (const each of [one, two]) await expect.poll(() => quotaOf(each)).toEqual({ agents: 5, calls: 2 });
  await two.companies.update(admin, { name: "third", config: { max_agents: "0", max_calls: "" } });
  for (const each of [one, two]) await expect.poll(() => quotaOf(each)).toEqual({ agents: 0, calls: Infinity });
  expect(countQuotaOf(one.gate.configOf("matrix")), "others have none").toEqual({ agents: Infinity, calls: Infinity });
  for (const [member, texts] of Object.entries({
    max_agents: ["-1", "1.5", "many", "1e3"],
    max_calls: ["0", "-1", "1.5", "many", String(TENANT_CALLS_IN_FLIGHT_MAX + 1)],
  }))
    for (const text of texts)
      await expect(one.companies.update(admin, { name: "third", config: { [member]: text } })).rejects.toMatchObject({
        code: "invalid",
        details: { fields: [`config.${member}`] },
      });
  expect(quotaOf(one)).toEqual({ agents: 0, calls: Infinity });
});

test("what was kept before it was a quota is none, and nothing keeps a tenant from every call", () => {
  expect(countQuotaOf({ max_agents: "many", max_calls: "few" })).toEqual({ agents: Infinity, calls: Infinity });
  expect(countQuotaOf({ max_calls: "0" })).toEqual({ agents: Infinity, calls: 1 });
});
