import { isAppError } from "../../../../common/errors.ts";
import type { SecretBox } from "../../../secrets/index.ts";
import { secretContext, type HostRecord } from "../store.ts";

/** Address and user of an SSH connection. */
export interface Destination {
  readonly address: string;
  readonly port: number;
  readonly username: string;
}

/** Members of `config` that are sent to the SSH server. */
const CREDENTIALS = ["password", "privatekey", "passphrase"] as const;
export type Credential = (typeof CREDENTIALS)[number];

const SSH_PORT = 22;

export function isCredential(name: string): name is Credential {
  return CREDENTIALS.some((one) => one === name);
}

export function destinationOf({ host, iplist, config }: Omit<HostPlace, "sshkey">): Destination {
  return {
    address: config.address || iplist[0] || host,
    port: Number(config.port || SSH_PORT),
    username: config.username ?? "",
  };
}

export interface SealedFor {
  readonly tenant: string;
  readonly host: string;
  readonly destination: Destination;
}

/**
 * Seals a credential together with its destination. If the record later has another destination, by any kind of write,
 * the credential cannot be opened.
 */
export function sealCredential(secrets: SecretBox, name: Credential, secret: string, whose: SealedFor): string {
  return secrets.seal(secret, contextOf(name, whose));
}

/**
 * `undefined` if the host has no such credential. Throws `AppError("unavailable")` if its destination is another one.
 */
export function openCredential(
  secrets: SecretBox,
  name: Credential,
  tenant: string,
  record: HostRecord,
): string | undefined {
  const sealed = record.credentials[name];
  if (sealed === undefined) return undefined;
  const { host } = record;
  try {
    return secrets.open(sealed, contextOf(name, { tenant, host, destination: destinationOf(record) }));
  } catch (error) {
    if (!isAppError(error, "unavailable")) throw error;
    // Credentials stored by earlier versions do not name their destination.
    return secrets.open(sealed, secretContext(tenant, host, name));
  }
}

/** Contexts under which a secret of the host may be sealed, the current form first. */
export function credentialContexts(name: string, tenant: string, record: HostRecord): [string, ...string[]] {
  const plain = secretContext(tenant, record.host, name);
  if (!isCredential(name)) return [plain];
  // Credentials stored by earlier versions do not name their destination.
  return [contextOf(name, { tenant, host: record.host, destination: destinationOf(record) }), plain];
}

export type HostPlace = Pick<HostRecord, "host" | "iplist" | "config" | "sshkey">;

/** Stored values that a record change removes, because they are for the former destination. */
export interface Move {
  readonly credentialsGone: readonly Credential[];
  readonly keyGone: boolean;
}

/** `brought`: credentials and key that the change itself supplies. */
export function moveOf(before: HostRecord, after: HostPlace, brought: ReadonlySet<string>): Move {
  const [from, to] = [destinationOf(before), destinationOf(after)];
  const elsewhere = from.address !== to.address || from.port !== to.port;
  const keyChanged = before.sshkey !== "" && after.sshkey !== before.sshkey;
  const dropped = elsewhere || from.username !== to.username || keyChanged;
  return {
    credentialsGone: dropped
      ? CREDENTIALS.filter((name) => before.credentials[name] !== undefined && !brought.has(name))
      : [],
    keyGone: elsewhere && before.sshkey !== "" && !brought.has("sshkey"),
  };
}

function contextOf(name: Credential, { tenant, host, destination }: SealedFor): string {
  const { username, address, port } = destination;
  return `${secretContext(tenant, host, name)} for ${JSON.stringify([username, address, port])}`;
}
