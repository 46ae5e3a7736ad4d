import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { FactsReader } from "../../agent/facts.ts";
import { VITAL_FACTS } from "../agent/vitals.ts";
import { TARGET_NAME_MAX_CHARACTERS, TARGET_TEXT_MAX_CHARACTERS } from "../limits.ts";
import { isExpression, parseTarget } from "./index.ts";

test.each([
  ["tag:os/linux", { kind: "tag", path: "os/linux" }],
  ["tag:/os/linux/", { kind: "tag", path: "os/linux" }],
  ["tag:two words", { kind: "tag", path: "two words" }],
  ["group:web: front", { kind: "group", group: "web: front" }],
  ["web-*", { kind: "pattern", pattern: "web-*" }],
  ["*", { kind: "pattern", pattern: "*" }],
  ["a**b", { kind: "pattern", pattern: "a*b" }],
  ["where:domain='a.b' and config.site in ('x','y')", { kind: "where" }],
  ["where: isagent = 1 or hostinfo.domain like 'x*'", { kind: "where" }],
  ["where:host = 'a'\nor 'os/linux' = any(tags)", { kind: "where" }],
])("%j is an expression", (entry, target) => {
  expect(isExpression(entry)).toBe(true);
  expect(parseTarget(entry)).toMatchObject(target);
});

test.each(["web-1", "a.b_c", "tags:web", "Tag:web", " tag:web", "fe80::1", "h1,h2", "", "名"])(
  "%j is the name of a host, as it always was",
  (entry) => {
    expect(isExpression(entry)).toBe(false);
    expect(parseTarget(entry)).toEqual({ kind: "name", host: entry });
  },
);

test.each([
  ["tag:", 5, "path of a tag"],
  ["tag: ", 5, "path of a tag"],
  ["tag:a//b", 7, '"" is no part'],
  ["tag:a/../b", 7, '".." is no part'],
  ["tag:os/*", 8, "by themselves"],
  ["tag:a\u0000", 6, "control"],
  [`tag:${"a/".repeat(17)}a`, 5, "at most 16 deep"],
  ["group:", 7, "a group of hosts"],
  ["group: web", 7, "blanks"],
  ["group:w*", 8, "no *"],
  [`group:${"é".repeat(251)}`, 7, "500 bytes"],
  ["web *", 4, '" " is in no name'],
  ["http://*", 5, '":" is in no name'],
  ["where:", 7, "a condition"],
  ["where:domain", 13, "found the end"],
  ["where:domain = 'a' limit 3", 20, "found limit"],
  ["where:domain = 'a'); drop class /x", 19, "found"],
  ["where:host = 'a'\n or or", 22, "found"],
  ["where:host in (select host from /x)", 16, "found"],
  ["where:host = ?", 7, "no ?"],
  ["where:count(host) > 1", 7, "several rows"],
  ["where:ctime > ago('1 hour')", 15, "ago() changes with time"],
  ["where:ctime > now()", 15, "now() changes with time"],
  ["where:STATUS = 'online'", 7, "STATUS changes all the time"],
  ["where:not (a = 1 or hostinfo.seen > 3)", 21, "seen changes all the time"],
  ["where:lower(status) = 'x'", 13, "status changes all the time"],
  ["where:case when vtime > 1 then true else false end = true", 17, "vtime changes all the time"],
  ["where:config contains 'a'", 7, "name a member"],
  ["where:config.load_1m > '1'", 7, "load_1m changes all the time"],
  ["where:hostinfo.config.uptime_s > '1'", 7, "uptime_s changes all the time"],
])("%j is refused at character %i", (entry, character, complaint) => {
  expect(() => parseTarget(entry)).toThrow(
    expect.objectContaining({ message: expect.stringContaining(complaint) as string, details: { character } }),
  );
});

test("the page for users shows expressions of every kind, and the error of a condition", async () => {
  const page = await readFile(join(import.meta.dirname, "../../deploy/docs/targets.md"), "utf8");
  const shown = [...page.matchAll(/^\| `([^`]+)` \| (?:the host|hosts)/gm)].map(([, entry = ""]) => entry);
  expect(shown.map((entry) => parseTarget(entry).kind)).toEqual(["name", "tag", "group", "pattern", "where"]);
  const [, code, message = ""] = /^(syntax): (.*)$/m.exec(page) ?? [];
  expect(() => parseTarget("where:domain")).toThrow(expect.objectContaining({ code, message }));
});

test("a text that is too long is refused, as a name or as an expression", () => {
  expect(() => parseTarget("a".repeat(TARGET_NAME_MAX_CHARACTERS + 1))).toThrow("at most 255 characters");
  expect(() => parseTarget(`tag:${"a".repeat(TARGET_TEXT_MAX_CHARACTERS)}`)).toThrow(
    expect.objectContaining({ code: "too_large" }),
  );
});

test("every figure that an agent reports is one that a target cannot depend on", async () => {
  const figures = Object.keys(await new FactsReader("h1", ".").values());
  expect(VITAL_FACTS).toEqual(expect.arrayContaining(figures));
});
