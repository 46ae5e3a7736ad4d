import type { PeerCertificate } from "node:tls";
import { AppError } from "../../../../common/errors.ts";
import type { AgentIdentity } from "../types.ts";

/**
 * The identity in a certificate: one URI, `odp://<tenant>/<host>`, and the host's enrolment inside the serial number.
 */

const GENERATION_DIGITS = 16;
/** Keeps serial numbers positive and of one length. */
const SERIAL_PREFIX = "4F";
const SERIAL = /^4F([0-9A-F]{16})[0-9A-F]{16}$/;
const CONTROLLER_URI = /^URI:odp-controller:\/\/([0-9A-Za-z_-]{1,64})$/;
const AGENT_URI = /^URI:odp:\/\/([a-z][a-z0-9_]{0,47})\/([^/?#,\s"]{1,1000})$/;

export function agentUri(tenant: string, host: string): string {
  return `odp://${tenant}/${encodeURIComponent(host)}`;
}

/** URI by which a controller identifies itself to other controllers. */
export function controllerUri(controllerId: string): string {
  return `odp-controller://${controllerId}`;
}

export function newGeneration(random: (count: number) => Uint8Array): string {
  return hex(random(GENERATION_DIGITS / 2));
}

/** Creates a serial number for one enrolment. Renewals keep the first part; the rest is random. */
export function newSerial(generation: string, random: (count: number) => Uint8Array): string {
  return SERIAL_PREFIX + generation + hex(random(8));
}

/** The enrolment that a serial number belongs to; `undefined` if it is not the serial number of an agent. */
export function generationOf(serial: string): string | undefined {
  return SERIAL.exec(serial.toUpperCase())?.[1];
}

/**
 * Returns the identity of an agent from its certificate alone. TLS has checked the signature. The validity times are
 * checked here, because TLS does not check them for a resumed connection.
 */
export function identityOf(certificate: PeerCertificate | undefined, nowMs: number): AgentIdentity {
  const [, tenant, host] = AGENT_URI.exec(certificate?.subjectaltname ?? "") ?? [];
  if (!certificate || tenant === undefined || host === undefined) {
    throw new AppError("denied", "The certificate is not one of an agent.");
  }
  if (!isValid(certificate, nowMs)) {
    throw new AppError("denied", `The certificate was valid until ${certificate.valid_to}: enrol this host again.`);
  }
  return { tenant, host: decodeHost(host), serial: certificate.serialNumber.toUpperCase() };
}

/**
 * Returns the id of the calling controller from its certificate alone. Throws `AppError("denied")` for any other
 * certificate, including those of agents.
 */
export function controllerOf(certificate: PeerCertificate | undefined, nowMs: number): string {
  const [, controllerId] = CONTROLLER_URI.exec(certificate?.subjectaltname ?? "") ?? [];
  if (!certificate || controllerId === undefined || !isValid(certificate, nowMs)) {
    throw new AppError("denied", "The certificate is not one of a controller.");
  }
  return controllerId;
}

function isValid(certificate: PeerCertificate, nowMs: number): boolean {
  return Date.parse(certificate.valid_from) <= nowMs && nowMs < Date.parse(certificate.valid_to);
}

function decodeHost(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw new AppError("denied", "The certificate is not one of an agent.", { cause });
  }
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex").toUpperCase();
}
