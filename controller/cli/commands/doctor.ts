import type { CredentialsOptions } from "../../../common/client/index.ts";
import { CLI_DOCTOR_CALL_MS } from "../../../common/limits.ts";
import type { Call } from "../declared/call.ts";
import type { CommandDeclaration } from "../declared/declaration.ts";
import { writeBundle } from "../doctor/bundle.ts";
import { certificateEnd } from "../doctor/certificate.ts";
import { addressText, checksOf, type Check } from "../doctor/checks.ts";
import { Redaction } from "../doctor/redaction.ts";
import { column, type View } from "../formats/columns.ts";

const VIEW: View = { name: "check", columns: [column("check", { isWhole: true }), column("result"), column("detail")] };
const FAILED = 2;
const WARNED = 3;

/** `odp doctor` */
export const DOCTOR_COMMAND: CommandDeclaration = {
  name: "doctor",
  summary: "check the way to the controller, the session and the state of the controller",
  details:
    "With --bundle, also writes an archive for a question to the makers: versions, checks, settings, readiness, metrics, states of hosts and policies, and the newest errors, as far as your rights allow. Passwords, tokens, sessions, keys and the like are removed from it; look into it before you pass it on.",
  flags: [
    {
      name: "bundle",
      short: "f",
      value: "file",
      summary: "archive to make, as odp.tar.gz; an existing file is left alone",
    },
  ],
  exitCodes: { 0: "all is well", [FAILED]: "a check has failed", [WARNED]: "there are warnings" },
  examples: ["odp doctor", "odp doctor --bundle odp.tar.gz"],
  run: doctor,
};

async function doctor(call: Call): Promise<number> {
  const { shell } = call;
  const { clock, version, fetch } = shell;
  const [access, signal] = [await shell.access(), shell.ended()];
  const checks = await checksOf({
    ...{ access, version, clock, signal, fetch },
    certificateEnd: (url, given) => certificateEnd(url, given, CLI_DOCTOR_CALL_MS),
  });
  const file = call.optional("bundle");
  if (file !== undefined) await bundle(call, file, checks);
  await shell.show(checks, VIEW);
  if (checks.some(({ result }) => result === "failed")) return FAILED;
  return checks.some(({ result }) => result === "warning") ? WARNED : 0;
}

async function bundle({ shell }: Call, file: string, checks: readonly Check[]): Promise<void> {
  const { url, credentials } = await shell.access();
  const missing = await writeBundle(file, {
    ...{ client: await shell.client(CLI_DOCTOR_CALL_MS), signal: shell.ended(), nowMs: shell.clock.nowMs() },
    redaction: new Redaction(secretsOf(url, credentials)),
    own: {
      "versions.json": {
        odp: shell.version,
        node: process.versions.node,
        platform: shell.platform,
        url: addressText(url),
      },
      "checks.json": checks,
    },
  });
  shell.note(`${file} is written, without secrets. Look into it before you pass it on: tar -xzOf ${file}`);
  for (const [name, why] of Object.entries(missing)) shell.note(`without ${name}: ${why}`);
}

/** Secrets of the caller, as they may come back in messages. */
function secretsOf(url: string, { password, token, session }: CredentialsOptions): readonly string[] {
  const secrets = [password, token, session, new URL(url).password];
  return secrets.filter((secret) => secret !== undefined);
}
