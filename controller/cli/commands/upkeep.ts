import { setTimeout } from "node:timers/promises";
import { AppError } from "../../../common/errors.ts";
import { parseTimestamp } from "../../../common/timestamps.ts";
import { counted } from "../../../common/text/counted.ts";
import { aheadOf, aheadRows, AHEAD_VIEW } from "../ahead.ts";
import { exportAudit, verifyAudit } from "../audit.ts";
import { tenantOf } from "../contexts/access.ts";
import type { Call } from "../declared/call.ts";
import type { CommandDeclaration } from "../declared/declaration.ts";
import { repairRows, repairsOf, REPAIRS_VIEW } from "../repairs.ts";
import { exitCodeOf, followScrub, statusExitCodeOf, statusOf } from "../scrub.ts";

const SCRUB_LOOK_EVERY_MS = 2_000;

/** `odp scrub`, `repairs`, `ahead` and `audit`. */
export const UPKEEP_COMMANDS: readonly CommandDeclaration[] = [
  {
    name: "scrub",
    summary:
      "compare indexes and edges of the tenant with its objects, and contents with their digests, and mend what can be mended",
    details: "It goes on when this command ends.",
    flags: [
      { name: "rate", value: "n", summary: "comparisons with the store a second, at most" },
      {
        name: "status",
        summary:
          "only show how far it is, what the last one found, whether one is due, and which rows are damaged (exit code 2: something is)",
      },
      { name: "stop", summary: "stop the one that is under way" },
    ],
    exitCodes: { 0: "sound or mended", 2: "a content is damaged, or it was stopped" },
    run: scrub,
  },
  {
    name: "repairs",
    isReading: true,
    summary: "show when the tables of the tenant were last repaired on all nodes of Cassandra, and which are due",
    exitCodes: { 0: "none is due", 2: "one is" },
    async run({ shell }) {
      const repairs = await repairsOf(await shell.client());
      await (shell.format === "table" ? shell.show(repairRows(repairs), REPAIRS_VIEW) : shell.show(repairs));
      return repairs.due ? 2 : 0;
    },
  },
  {
    name: "ahead",
    isReading: true,
    summary: "list objects whose last write is ahead of the controller's clock, as an earlier version took them by AT",
    flags: [{ name: "limit", value: "n", summary: "how many at most", default: "100" }],
    exitCodes: { 0: "none", 2: "there are some" },
    run: ahead,
  },
  {
    name: "audit",
    summary: "check or export the audit trail of the tenant",
    commands: [
      {
        name: "verify",
        summary: "read the whole trail and name the first entry that does not hold",
        flags: [
          {
            name: "anchor",
            value: "file",
            summary: "anchor files of other controllers, besides that of the controller asked",
            takesMany: true,
            completes: "files",
          },
        ],
        exitCodes: { 0: "sound", 1: "not asked", 2: "broken", 3: "sound, but not kept outside the store" },
        run: verify,
      },
      {
        name: "export",
        summary: "write every entry as a line of JSON, the newest first",
        flags: [
          { name: "from", value: "time", summary: "entries from then on" },
          { name: "to", value: "time", summary: "entries before" },
        ],
        run: exportTrail,
      },
    ],
  },
];

async function scrub(call: Call): Promise<number | void> {
  const { shell } = call;
  const client = await shell.client();
  if (call.is("status")) {
    const found = await statusOf(client);
    await shell.show(found);
    return statusExitCodeOf(found);
  }
  if (call.is("stop")) return shell.show(await client.call("deleteClusterScrub"));
  const signal = shell.ended();
  const pause = () => setTimeout(SCRUB_LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined);
  const report = await followScrub({ client, pause, signal, note: (text) => shell.note(text) }, call.number("rate"));
  if (report === undefined) return;
  await shell.show(report);
  return exitCodeOf(report);
}

async function ahead(call: Call): Promise<number> {
  const { shell } = call;
  const found = await aheadOf(await shell.client(), Number(call.text("limit")));
  await (shell.format === "table" ? shell.show(aheadRows(found), AHEAD_VIEW) : shell.show(found));
  if (found.more) shell.note(`There may be more than these ${found.objects.length}: add --limit <n>.`);
  return found.objects.length > 0 ? 2 : 0;
}

async function verify(call: Call): Promise<number> {
  const { shell } = call;
  return verifyAudit({
    client: await shell.client(),
    signal: shell.ended(),
    tenant: tenantOf(await shell.access()),
    anchorFiles: call.list("anchor"),
    json: shell.format === "json",
    write: (text) => shell.write(text),
    note: (text) => shell.note(text),
  });
}

async function exportTrail(call: Call): Promise<void> {
  const { shell } = call;
  const [from, to] = [timeOf(call.optional("from")), timeOf(call.optional("to"))];
  const period = { ...(from !== undefined && { from }), ...(to !== undefined && { to }) };
  const asked = { client: await shell.client(), signal: shell.ended(), write: (text: string) => shell.write(text) };
  shell.note(counted(await exportAudit(asked, period), "entry", "entries"));
}

function timeOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const timeMs = parseTimestamp(text);
  if (timeMs === undefined) throw new AppError("invalid", `${text} is no time.`);
  return timeMs;
}
