import { expect, test } from "vitest";
import { checkSpec } from "./validation.ts";

const LOG = { kind: "log", name: "p", rule: "/matrix/rules/a", dir: "/var/log", match: "\\.log$" } as const;

test.each(["utf-16le", "GBK", "Shift_JIS", "windows-1252", "iso-8859-1", "utf-8", ""])(
  "a log policy names the encoding %j",
  (encoding) => {
    checkSpec({ ...LOG, attrs: { encoding } });
  },
);

test("an encoding that is none is refused by its name", () => {
  expect(() => checkSpec({ ...LOG, attrs: { encoding: "klingon" } })).toThrow(
    /attrs\.encoding="klingon" is no encoding/,
  );
});

test.each(["first", "^#Fields:", "^time,host,", ""])("a log policy names its heading lines by %j", (heading) => {
  checkSpec({ ...LOG, attrs: { heading } });
});

test.each([
  ["second", /attrs\.heading is "first", or a regular expression that begins with \^, not "second"/],
  ["^(", /attrs\.heading is refused: /],
])("heading lines that are none are refused: %j", (heading, message) => {
  expect(() => checkSpec({ ...LOG, attrs: { heading } })).toThrow(message);
});

test("a delimiter that no line begins or ends with is refused in another encoding", () => {
  expect(() => checkSpec({ ...LOG, delimiter: "<record>", attrs: { encoding: "gbk" } })).toThrow(
    /The delimiter "<record>" is not found in gbk: begin it with \^ or end it with \$/,
  );
  checkSpec({ ...LOG, delimiter: "^<record>", attrs: { encoding: "gbk" } });
});

test("a time zone that is none is refused by the name of its attribute", () => {
  for (const policy of [LOG, { kind: "command", command: "date", ctype: 1, interval: 1, unit: "hour" } as const])
    expect(() => checkSpec({ ...LOG, ...policy, attrs: { time_zone: "Mars/Olympus" } })).toThrow(
      /attrs\.time_zone is refused: There is no time zone "Mars\/Olympus"/,
    );
  checkSpec({ ...LOG, attrs: { time_zone: "" } });
});
