import { expect, test } from "vitest";
import { timeZoneOf, UTC } from "../../../common/times/index.ts";
import { column, type View } from "./columns.ts";
import { paintFor, PLAIN } from "./paint.ts";
import type { Format } from "./names.ts";
import { rendered, type Rendering } from "./rendered.ts";
import { distanceText } from "./times.ts";
import { columnsOf } from "./width.ts";

const VIEW: View = {
  name: "host",
  columns: [column("host"), column("seen", { isTime: true }), column("note", { isWide: true })],
};
const ROWS = [
  { host: "web-1", seen: Date.UTC(2026, 0, 2, 3, 4, 5), note: "a, b", tags: ["x", "y"] },
  { host: "yes", seen: 0, note: 'say "hi"', tags: [] },
];

const shown = (format: Format, more: { readonly fields?: readonly string[]; readonly width?: number } = {}) =>
  rendered(ROWS, { format, paint: PLAIN, ...more }, VIEW);

test("a list is a table with times, and the same in each other format", () => {
  expect(shown("table")).toBe(
    ["host   seen", "-----  --------------------", "web-1  2026-01-02T03:04:05Z", "yes", ""].join("\n"),
  );
  expect(shown("wide")).toContain("web-1  2026-01-02T03:04:05Z  a, b\n");
  expect(JSON.parse(shown("json"))).toEqual(ROWS);
  expect(shown("csv")).toBe(`host,seen,note\nweb-1,${ROWS[0]?.seen},"a, b"\nyes,0,"say ""hi"""\n`);
  expect(shown("name")).toBe("web-1\nyes\n");
  expect(shown("yaml")).toBe(
    `- host: web-1\n  seen: ${ROWS[0]?.seen}\n  note: "a, b"\n  tags:\n    - x\n    - "y"\n` +
      `- host: "yes"\n  seen: 0\n  note: "say \\"hi\\""\n  tags: []\n`,
  );
});

test("times are those of the reader's zone, and near ones tell how long ago they are on a terminal", () => {
  const zone = timeZoneOf("Europe/Oslo");
  const [inWinter, inSummer] = [Date.UTC(2026, 0, 2, 3, 4, 5, 6), Date.UTC(2026, 6, 2, 23)];
  const rows = [{ seen: inWinter, ran: inSummer, n: inSummer, due: [inWinter, inSummer] }];
  const view: View = {
    name: "n",
    columns: [
      column("when", { member: "seen", isTime: true }),
      column("ran", { isTime: true, isNear: true }),
      column("n"),
      column("due", { isTime: true }),
    ],
  };
  const line = (more: Partial<Rendering>) =>
    rendered(rows, { format: "table", paint: PLAIN, zone, ...more }, view)
      .split("\n")[2]
      ?.split(/ {2,}/);
  const due = "2026-01-02T04:04:05.006+01:00, 2026-07-03T01:00:00+02:00";
  const exact = ["2026-01-02T04:04:05.006+01:00", "2026-07-03T01:00:00+02:00", String(inSummer), due];
  expect(line({})).toEqual(exact);
  expect(line({ nowMs: inSummer + 3 * 60_000 })).toEqual(exact.with(1, "3 min ago"));
  expect(line({ nowMs: inSummer + 3 * 60_000, format: "wide" })).toEqual(exact);
  expect(line({ fields: ["seen"] })).toEqual(exact.slice(0, 1));
  expect(rendered(rows, { format: "csv", paint: PLAIN, zone, nowMs: 0 }, view)).toContain(`${inWinter},${inSummer},`);
  expect(rendered(rows[0], { format: "table", paint: PLAIN, zone }, view)).toContain(`seen  ${exact[0]}\n`);
});

test.each([
  [0, "now"],
  [59_999, "59 s ago"],
  [-60_000, "in 1 min"],
  [23 * 3_600_000, "23 h ago"],
  [-2 * 86_400_000, "in 2 d"],
  [100 * 86_400_000, "2025-09-24T00:00:00Z"],
  [Number.NaN, "NaN"],
])("a time %d ms ago is shown as %s", (agoMs, text) => {
  const nowMs = Date.UTC(2026, 0, 2);
  expect(distanceText(nowMs - agoMs, UTC, nowMs)).toBe(text);
});

test("a field may be a heading of the table, which shows another member", () => {
  const view: View = {
    name: "runid",
    columns: [column("run", { member: "runid" }), column("up", { of: () => "yes" })],
  };
  const rows = [{ runid: "r1", isup: true }];
  const of = (format: Format) => rendered(rows, { format, fields: ["up", "run", "runid"], paint: PLAIN }, view);
  expect(of("csv")).toBe("up,run,runid\nyes,r1,r1\n");
  expect(JSON.parse(of("json"))).toEqual([{ up: "yes", run: "r1", runid: "r1" }]);
  expect(JSON.parse(rendered(rows[0], { format: "json", fields: ["run"], paint: PLAIN }, view))).toEqual({ run: "r1" });
});

test("fields choose members and their order; an unknown one is an error with the nearest", () => {
  expect(shown("table", { fields: ["tags", "host"] })).toBe("tags  host\n----  -----\nx, y  web-1\n      yes\n");
  expect(JSON.parse(shown("json", { fields: ["host"] }))).toEqual([{ host: "web-1" }, { host: "yes" }]);
  expect(() => shown("csv", { fields: ["hots"] })).toThrow("There is no field hots; did you mean host?");
});

test.each(["table", "wide", "json", "yaml", "csv"] as const)(
  "one thing is shown by members and headings as a list is: %s",
  (format) => {
    const view: View = {
      name: "host",
      columns: [column("host"), column("changed", { member: "mtime", isTime: true })],
    };
    const row = { host: "web-1", mtime: 1_000, big: "9007199254740993" };
    const show = (answer: unknown) => rendered(answer, { format, fields: ["changed", "big"], paint: PLAIN }, view);
    const [one, list] = [show(row), show([row])];
    for (const text of [one, list]) {
      expect(text).toContain(format === "table" || format === "wide" ? "1970-01-01T00:00:01Z" : "1000");
      expect(text).toContain("9007199254740993");
      expect(text).toContain("changed");
    }
  },
);

test("one thing is a sheet of its members, and an empty list says so", () => {
  expect(rendered(ROWS[0], { format: "table", paint: PLAIN }, VIEW)).toBe(
    "host  web-1\nseen  2026-01-02T03:04:05Z\nnote  a, b\ntags  x, y\n",
  );
  expect(rendered([], { format: "table", paint: PLAIN }, VIEW)).toBe("no rows\n");
  expect([rendered([], { format: "json", paint: PLAIN }), rendered([], { format: "yaml", paint: PLAIN })]).toEqual([
    "[]\n",
    "[]\n",
  ]);
});

test("a table fits the terminal: the widest columns give way, by columns and not by characters", () => {
  const rows = [
    { name: "監視サーバー東京", mark: "👩‍👩‍👧‍👦 e\u0301", text: "word ".repeat(50) },
    { name: "web", mark: "x", text: "short" },
  ];
  const lines = rendered(rows, { format: "table", width: 60, paint: PLAIN }).trimEnd().split("\n");
  expect(lines.map(columnsOf).every((columns) => columns <= 60)).toBe(true);
  expect(lines[2]).toMatch(/^監視サーバー東京 {2}👩‍👩‍👧‍👦 e\u0301 {2}word .*…$/u);
  expect(lines[3]).toBe(`web${" ".repeat(15)}x${" ".repeat(5)}short`);
});

test("an id stays whole, and columns without room are named below the table", () => {
  const row = { run: "01M8PR4ABCDEFGHJKMNPQRSTVW", job: "backup@nightly", host: "web-1.example.com", message: "none" };
  const view: View = {
    name: "run",
    columns: [column("run", { isWhole: true }), column("job"), column("host"), column("message")],
  };
  const lines = rendered([row], { format: "table", width: 46, paint: PLAIN }, view).split("\n");
  expect(lines).toEqual([
    "run                         job       host",
    "--------------------------  --------  --------",
    "01M8PR4ABCDEFGHJKMNPQRSTVW  backup@…  web-1.e…",
    "(message: with -o wide)",
    "",
  ]);
});

test("the line of hidden columns fits, too: with their number if their names have no room", () => {
  const row = { first: "a".repeat(20), second: "b".repeat(20), third: "c".repeat(20) };
  const lines = rendered([row], { format: "table", width: 20, paint: PLAIN }).trimEnd().split("\n");
  expect(lines.at(-1)).toBe("(1 more: -o wide)");
});

test.each(["table", "wide", "json", "yaml", "csv", "name"] as const)(
  "on a terminal no value of a row is obeyed as a control character: %s",
  (format) => {
    const evil = { id: "\u001b[2J\u009b31m\u202eid", text: `line\nbreak\r\u0007${"y".repeat(1 << 20)}` };
    const text = rendered([evil], { format, width: 80, paint: PLAIN });
    expect(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/.test(text)).toBe(false);
    if (format === "json") expect(JSON.parse(text)).toEqual([evil]);
    if (format === "table") expect(text.length).toBeLessThan(1_000);
    if (format === "wide") expect(text.length).toBeLessThan(20_000);
  },
);

test("colours are for terminals that have them, and never against NO_COLOR", () => {
  const colour = (out: { isTTY?: boolean }, env: Record<string, string>) => paintFor(out, env) !== PLAIN;
  expect([
    colour({ isTTY: true }, {}),
    colour({ isTTY: true }, { NO_COLOR: "" }),
    colour({ isTTY: true }, { NO_COLOR: "1" }),
    colour({ isTTY: true }, { TERM: "dumb" }),
    colour({}, {}),
  ]).toEqual([true, true, false, false, false]);
  const painted = rendered([{ state: "failed", n: 1 }], {
    format: "table",
    paint: paintFor({ isTTY: true }, {}),
    width: 80,
  });
  expect(painted.split("\n")[2]).toBe("\u001b[31mfailed\u001b[0m  1");
});
