import type { GroupInput } from "../../../../common/api/job-groups.ts";
import { AppError } from "../../../../common/errors.ts";
import {
  JOB_GROUP_HOSTS_MAX,
  JOB_GROUP_MAX_BYTES,
  JOB_GROUP_NAME_MAX_BYTES,
  JOB_GROUP_PASSWORD_MAX_BYTES,
} from "../../../../common/limits.ts";
import { unstamped } from "../../../../common/revisions.ts";
import { checkName } from "../../../../common/names.ts";
import type { StoredGroup } from "./store.ts";

const NAME = { what: "name of a group", maxBytes: JOB_GROUP_NAME_MAX_BYTES, limit: "JOB_GROUP_NAME_MAX_BYTES" };
const HOST = { ...NAME, what: "name of a host" };
const PROXY = { ...NAME, what: "name of a proxy" };
const FINGERPRINT = /^SHA256:[A-Za-z0-9+/]{43}$/;

type Host = GroupInput["hosts"][number];

/** Throws `AppError("invalid")` or `AppError("too_large")`; the message names the wrong host. */
export function checkGroup({ name, hosts }: GroupInput): void {
  checkName(name, NAME);
  if (hosts.length > JOB_GROUP_HOSTS_MAX)
    throw tooLarge(`A group has at most ${JOB_GROUP_HOSTS_MAX} hosts.`, "JOB_GROUP_HOSTS_MAX");
  const names = new Set<string>();
  for (const host of hosts) {
    checkHost(host);
    if (names.has(host.host)) throw invalid(`The host ${host.host} stands twice in the group.`);
    names.add(host.host);
  }
}

export function checkSize(group: StoredGroup): void {
  if (Buffer.byteLength(JSON.stringify(unstamped(group))) > JOB_GROUP_MAX_BYTES)
    throw tooLarge(`The group ${group.name} has more than ${JOB_GROUP_MAX_BYTES} bytes.`, "JOB_GROUP_MAX_BYTES");
}

function checkHost({ host, proxy = "", port = "", username = "", password = "", sshkey = "" }: Host): void {
  checkName(host, HOST);
  if (proxy !== "") checkName(proxy, PROXY);
  if (proxy === host) throw invalid(`The host ${host} cannot lead to itself: proxy names the host before it.`);
  if (port !== "" && !isPort(String(port))) throw invalid(`The port of ${host} is no number from 1 to 65535.`);
  if (username !== "") checkName(username, { ...NAME, what: `username of ${host}` });
  if (Buffer.byteLength(password) > JOB_GROUP_PASSWORD_MAX_BYTES)
    throw tooLarge(
      `The password of ${host} has more than ${JOB_GROUP_PASSWORD_MAX_BYTES} bytes.`,
      "JOB_GROUP_PASSWORD_MAX_BYTES",
    );
  if (sshkey !== "" && !FINGERPRINT.test(sshkey))
    throw invalid(`The sshkey of ${host} is no fingerprint of the form SHA256:….`);
}

function isPort(text: string): boolean {
  return /^[0-9]{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535;
}

function invalid(message: string): AppError {
  return new AppError("invalid", message);
}

function tooLarge(message: string, limit: string): AppError {
  return new AppError("too_large", message, { details: { limit } });
}
