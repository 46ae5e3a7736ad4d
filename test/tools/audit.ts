import { spawnSync } from "node:child_process";

/**
 * Asks the registry for known vulnerabilities of the packages that the programs ship with. A registry that does not
 * answer such requests is reported, but is no failure.
 */
const AUDIT_DEADLINE_MS = 120_000;

interface Report {
  readonly metadata?: { readonly vulnerabilities?: Readonly<Record<string, number>> };
}

const { stdout, stderr } = spawnSync("npm", ["audit", "--omit=dev", "--json"], {
  encoding: "utf8",
  timeout: AUDIT_DEADLINE_MS,
});
const found = reportIn(stdout)?.metadata?.vulnerabilities;
if (found === undefined) {
  console.log(
    `Not audited: the registry does not answer audits. ${stderr.split("\n").find((line) => line.includes("audit")) ?? ""}`,
  );
} else {
  console.log(`Known weaknesses: ${JSON.stringify(found)}`);
  process.exitCode = (found.high ?? 0) + (found.critical ?? 0) > 0 ? 1 : 0;
}

function reportIn(text: string): Report | undefined {
  try {
    return JSON.parse(text) as Report;
  } catch {
    return undefined;
  }
}
