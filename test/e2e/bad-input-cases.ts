import { gzipSync } from "node:zlib";
import { tarOf, zipOf, type ArchiveEntry } from "../helpers/runs/archives.ts";

/** Bad inputs of `bad-input.test.ts`, by the call that they are sent to, with the error that each of them gets. */

export const LINE_CLASS = "/matrix/bad/line";
export const RULE = "/matrix/rules/bad/line";
export const GOOD_COMMAND_POLICY = {
  name: "p",
  rule: RULE,
  command: "true",
  ctype: 1,
  interval: 1,
  unit: "second",
  hosts: ["h1"],
};
export const GOOD_LOG_POLICY = { name: "l", rule: RULE, dir: "/var/log", match: "x\\.log", hosts: ["h1"] };
export const MIB = 1024 * 1024;

/** `body`: a text is sent unchanged; members replace those of a good input. `text`: what the message contains. */
export type Case = readonly [what: string, body: unknown, code: string, text: string | RegExp];

export const hosts: readonly Case[] = [
  ["no body", undefined, "invalid", "host is missing"],
  ["half a JSON", '{"host":"h', "syntax", "Not valid JSON"],
  ["a list", "[]", "invalid", "host is missing"],
  ["no host", { isagent: 1 }, "invalid", "host is missing"],
  ["a path as name", { host: "../h" }, "invalid", "no host name"],
  ["a NUL in its name", { host: "h\0" }, "invalid", "no host name"],
  ["too long a name", { host: "h".repeat(256) }, "invalid", "host must not have more than 255"],
  ["a flag that is none", { host: "h", isagent: 7 }, "invalid", "isagent"],
  ["a text for config", { host: "h", config: "x" }, "invalid", "config must be object"],
  ["a port that is none", { host: "h", config: { port: 99_999 } }, "invalid", "config.port"],
  ["a key that is none", { host: "h", sshkey: "nonsense" }, "invalid", "sshkey"],
  [
    "too many settings",
    { host: "h", config: Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`k${n}`, "v"])) },
    "too_large",
    "256",
  ],
  ["lists without end", `{"host":"h","config":${"[".repeat(5_000)}`, "too_large", "deeper than"],
  ["17 MiB", { host: "h", domain: "x".repeat(17 * MIB) }, "too_large", "larger than"],
];

export const commandPolicies: readonly Case[] = [
  ["half a JSON", JSON.stringify(GOOD_COMMAND_POLICY).slice(0, 40), "syntax", "Not valid JSON"],
  ["no name", { name: undefined }, "invalid", "name is missing"],
  ["a path as name", { name: "../p" }, "invalid", "slash"],
  ["no rule", { rule: undefined }, "invalid", "rule is missing"],
  ["an unknown rule", { rule: "/matrix/rules/none" }, "not_found", "/matrix/rules/none"],
  ["a rule of another tenant", { rule: "/other/rules/x" }, "invalid", "/other/rules/x"],
  ["an unknown host", { hosts: ["h1", "none"] }, "not_found", "no host none"],
  ["no command", { command: "" }, "invalid", "command"],
  ["no interval", { interval: 0 }, "invalid", "interval"],
  ["half an interval", { interval: 0.5 }, "invalid", "interval must be integer"],
  ["a unit that is none", { unit: "fortnight" }, "invalid", "unit must be one of"],
  ["no depot to run in", { ctype: 0 }, "invalid", "depotname is missing"],
  ["an unknown depot", { ctype: 0, depotname: "none", depotversion: "1.0.0" }, "not_found", "no depot none"],
  [
    "an unknown version",
    { ctype: 0, depotname: "good", depotversion: "7.0.0" },
    "not_found",
    "good with version 7.0.0",
  ],
  ["a delimiter that does not parse", { delimiter: "(" }, "invalid", "delimiter is refused"],
  ["a delimiter that explodes", { delimiter: "((a{1,900}){1,900}){1,900}" }, "invalid", "delimiter is refused"],
];

export const logPolicies: readonly Case[] = [
  ["no folder", { dir: undefined }, "invalid", "dir is missing"],
  ["a folder relative to nothing", { dir: "logs" }, "invalid", "dir"],
  ["no match", { match: "" }, "invalid", "match"],
  ["a match that does not parse", { match: "(" }, "invalid", "match is refused"],
  ["a match that looks ahead", { match: "(?=(a+)+)x" }, "invalid", "match is refused"],
  ["a match that explodes", { match: "(((a{1,100}){1,100}){1,100})" }, "invalid", "match is refused"],
  ["a matchregexp that refers back", { matchregexp: "(a+)+\\1" }, "invalid", "matchregexp is refused"],
  ["an order by a group that is not there", { priority: ["day"] }, "invalid", '"day"'],
  ["an unknown rule", { rule: "/matrix/rules/none" }, "not_found", "/matrix/rules/none"],
];

export const jobs: readonly Case[] = [
  ["no name", { name: undefined }, "invalid", "name is missing"],
  ["nothing to run", { exec: undefined }, "invalid", "exec is missing"],
  ["too much to run", { exec: Array<string>(60).fill("true") }, "invalid", "exec"],
  ["a time that is none", { timeout: "soon" }, "invalid", "timeout must be integer"],
  ["an unknown mode", { groupmode: "all" }, "invalid", "groupmode"],
  ["a folder above its own", { dir: "../.." }, "invalid", "leaves its folder"],
  ["a name of the platform", { name: "x", dir: "system/common" }, "denied", "belongs to the platform"],
];

export const rules: readonly Case[] = [
  ["no class", "--parser=text --class-less\n", "invalid", ""],
  ["an unknown parser", "--parser=magic\n", "invalid", "no parser named magic"],
  [
    "an unknown parser for a class to come",
    "--class=/matrix/bad/later\n--parser=magic\n",
    "invalid",
    "no parser named magic",
  ],
  ["an unknown pattern", "--parser=grok\n--pattern_1=%{NOPE:text}\n", "invalid", "NOPE"],
  [
    "an unknown pattern for a class to come",
    "--class=/matrix/bad/later\n--parser=grok\n--pattern_1=%{NOPE:text}\n",
    "invalid",
    "NOPE",
  ],
  ["a pattern that does not parse", "--parser=grok\n--pattern_1=(((\n", "invalid", "not usable"],
  [
    "a pattern that explodes",
    "--parser=grok\n--pattern_1=(?<text>((a{1,900}){1,900}){1,900})\n",
    "invalid",
    "not usable",
  ],
  ["a pattern that looks ahead", "--parser=grok\n--pattern_1=(?<text>(?=a))\n", "invalid", "not usable"],
  ["a column that is not there", "--parser=json\n--var_nope=field x\n", "not_found", "no column nope"],
  ["a var line that says nothing", "--parser=json\n--var_text=gibberish x\n", "syntax", "Line 3"],
  ["a type that is none", "--parser=csv\n--fields=text,n\n--fields_type=FOO\n", "invalid", "FOO"],
  ["a class named twice", `--class=${LINE_CLASS}\n--class=/x\n--parser=text\n`, "syntax", "twice"],
  ["a body that is no Lua", `--class=${LINE_CLASS}\n--parser=text\nthis is no script\n`, "syntax", "new:3"],
  ["half a MiB of text", `--parser=text\n${"-- x\n".repeat(100_000)}`, "too_large", "at most"],
];

export const newRules: readonly Case[] = [
  ["no class", { class: undefined }, "invalid", "class is missing"],
  ["an unknown class", { class: "/matrix/none" }, "not_found", "/matrix/none"],
  ["an unknown type", { type: "magic" }, "invalid", "type must be one of"],
  ["a field that its class does not have", { fields: ["nope"] }, "not_found", "no column nope"],
  ["options smuggled into a field", { fields: ["text\n--ignore"] }, "not_found", "no column"],
  ["grok without patterns", { type: "grok" }, "invalid", "needs fields"],
  ["an unknown pattern", { type: "grok", fields: ["NOPE"], mapping: { text: "NOPE" } }, "invalid", "NOPE"],
  ["a mapping of nothing", { type: "grok", fields: ["IP"], mapping: { text: "x" } }, "invalid", "captures x"],
  ["a mapping to nothing", { type: "grok", fields: ["IP"], mapping: { nope: "IP" } }, "not_found", "nope"],
];

export const deployments: readonly Case[] = [
  ["nothing", {}, "invalid", "hosts, depots, versions are missing"],
  [
    "more depots than versions",
    { hosts: "h1", depots: ["good", "good"], versions: "1.0.0" },
    "invalid",
    "one version for each depot",
  ],
  ["an unknown version", { hosts: "h1", depots: "good", versions: "7.0.0" }, "not_found", "good with version 7.0.0"],
  [
    "a time that is none",
    { hosts: "h1", depots: "good", versions: "1.0.0", timeout: "soon" },
    "invalid",
    "timeout must be integer",
  ],
  [
    "a path that leaves",
    { hosts: "h1", depots: "good", versions: "1.0.0", remotepath: "../.." },
    "invalid",
    "not absolute",
  ],
];

export const archives: readonly (readonly [
  what: string,
  filename: string,
  content: () => Buffer | Promise<Buffer>,
  code: string,
  text: string,
])[] = [
  ["a zip with a path that leaves", "a.zip", () => zipOf([{ name: "../../evil", content: "x" }]), "invalid", "evil"],
  [
    "a tar with a path that leaves",
    "a.tar",
    () =>
      tarOf([
        { name: "ok", content: "x" },
        { name: "a/../../evil", content: "x" },
      ]),
    "invalid",
    "leaves its folder",
  ],
  ["an absolute path", "a.tar", () => tarOf([{ name: "/etc/evil", content: "x" }]), "invalid", "absolute"],
  ["a path of another system", "a.tar", () => tarOf([{ name: "..\\evil", content: "x" }]), "invalid", "evil"],
  [
    "a symbolic link in a zip",
    "a.zip",
    () => zipOf([{ name: "l", content: "/etc/passwd", mode: 0o120777 }]),
    "invalid",
    "link",
  ],
  ["a symbolic link in a tar", "a.tar", () => tarOf([linkTo("2")]), "invalid", "link"],
  ["a hard link", "a.tar.gz", () => gzipSync(tarOf([linkTo("1")])), "invalid", "link"],
  ["a device", "a.tar", () => tarOf([{ name: "d", flag: "3" }]), "invalid", "neither a file nor a folder"],
  [
    "the same file twice",
    "a.tar",
    () =>
      tarOf([
        { name: "x", content: "1" },
        { name: "./x", content: "2" },
      ]),
    "invalid",
    "twice",
  ],
  ["a bomb", "b.tar.gz", () => gzipSync(tarOf([{ name: "x", content: Buffer.alloc(60 * MIB) }])), "too_large", ""],
  [
    "half a zip",
    "a.zip",
    async () => half(await zipOf([{ name: "x", content: "y".repeat(500) }])),
    "invalid",
    "cannot be read",
  ],
  ["half a tar", "a.tar", () => half(tarOf([{ name: "x", content: "y".repeat(5_000) }])), "invalid", "cut off"],
  ["half a gzip", "a.tgz", () => half(gzipSync(tarOf([{ name: "x", content: "y".repeat(5_000) }]))), "invalid", ""],
  ["no archive at all", "a.tar.gz", () => Buffer.from("no archive"), "invalid", ""],
  ["an archive with nothing in it", "a.tar", () => tarOf([]), "invalid", "no file"],
  ["a file name that leaves", "../../x.sh", () => Buffer.from("x"), "invalid", "leaves its folder"],
];

function linkTo(flag: string): ArchiveEntry {
  return { name: "link", flag, link: "/etc/passwd" };
}

function half(bytes: Buffer): Buffer {
  return bytes.subarray(0, Math.floor(bytes.length / 2));
}
