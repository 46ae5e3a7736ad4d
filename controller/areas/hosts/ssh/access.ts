import { AppError } from "../../../../common/errors.ts";
import type { SecretBox } from "../../../secrets/index.ts";
import type { Principal } from "../../permissions/index.ts";
import type { HostRecords } from "../records.ts";
import type { HostRecord } from "../store.ts";
import type { ProxiedHost, Target, WayTo } from "../types.ts";
import type { SshAddress } from "./connection.ts";
import { destinationOf, openCredential, type Credential } from "./destination.ts";

export interface SshAccessDependencies {
  readonly records: HostRecords;
  readonly secrets: SecretBox;
  readonly actAs: (tenant: string, traceparent: string) => Promise<Principal>;
  /** True: accepts the first key of a host that has none on record. False: a user has to enter the key. */
  readonly trustFirstKey: boolean;
}

export function hasSshCredentials(record: HostRecord): boolean {
  return (
    Boolean(record.config.username) &&
    (record.credentials.password !== undefined || record.credentials.privatekey !== undefined)
  );
}

/** The way in which the host runs policies. */
export function wayOf(record: HostRecord): WayTo {
  if (record.isagent === 1) return "agent";
  return hasSshCredentials(record) ? "ssh" : "none";
}

/** Gives SSH the data that it needs from a host's record. */
export class SshAccess {
  readonly #with: SshAccessDependencies;

  constructor(dependencies: SshAccessDependencies) {
    this.#with = dependencies;
  }

  async address(target: Target): Promise<SshAddress> {
    if (target.behind) return addressBehind(target.behind);
    const record = await this.#record(target);
    const secret = (name: Credential) => openCredential(this.#with.secrets, name, target.tenant, record);
    const password = secret("password");
    const privateKey = secret("privatekey");
    const passphrase = secret("passphrase");
    return {
      ...destinationOf(record),
      ...(password === undefined ? {} : { password }),
      ...(privateKey === undefined ? {} : { privateKey }),
      ...(passphrase === undefined ? {} : { passphrase }),
    };
  }

  /** Throws `AppError("denied")` unless this is the host's key. Records the first key before anything else is sent. */
  async checkKey(target: Target, fingerprint: string): Promise<boolean> {
    const { sshkey } = target.behind ?? (await this.#record(target));
    if (sshkey === fingerprint) return true;
    if (sshkey !== "")
      throw new AppError("denied", `The SSH key of ${target.host} is ${fingerprint}, its record says ${sshkey}.`);
    if (!this.#with.trustFirstKey) {
      throw new AppError("denied", `The SSH key of ${target.host} is not on its record; it shows ${fingerprint}.`);
    }
    if (target.behind) await target.behind.noteKey(fingerprint);
    else await this.#noteKey(target, fingerprint);
    return true;
  }

  async #noteKey(target: Target, fingerprint: string): Promise<void> {
    await this.#with.records.note(await this.#principal(target), target.host, [
      { column: "sshkey", operation: "set", value: fingerprint },
    ]);
  }

  async #record(target: Target): Promise<HostRecord> {
    return this.#with.records.need(await this.#principal(target), target.host);
  }

  #principal(target: Target): Promise<Principal> {
    return this.#with.actAs(target.tenant, target.traceparent);
  }
}

function addressBehind({ host, port, username, secret }: ProxiedHost): SshAddress {
  const isKey = secret.startsWith("-----BEGIN ");
  return { address: host, port, username, ...(isKey ? { privateKey: secret } : { password: secret }) };
}
