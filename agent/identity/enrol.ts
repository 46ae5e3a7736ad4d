import { createHmac, timingSafeEqual } from "node:crypto";
import { readFile, rm } from "node:fs/promises";
import { request as requestPlain, type IncomingMessage } from "node:http";
import { request as requestSecure } from "node:https";
import {
  answerProofText,
  parseJoinToken,
  type EnrolAnswer,
  type EnrolRequest,
  type JoinToken,
} from "../../common/agent/enrolment.ts";
import { AppError, ERROR_CODES, errorText, type ErrorCode } from "../../common/errors.ts";
import { ENROL_ANSWER_MAX_BYTES, ENROL_CALL_MS } from "../../common/limits.ts";
import { createKeyPem, createRequest } from "./csr.ts";
import { nodeFiles, writeAtomically } from "../disk/files.ts";
import { requireOwnCertificate, type Identity } from "./identity.ts";

export interface EnrolOptions {
  /** Base URL of a controller's HTTP interface. */
  readonly controller: string;
  readonly token: string;
  readonly name: string;
  /** True: a token for another host is refused. */
  readonly isNamed: boolean;
  /** The tenant whose data this agent has. Absent: it has none. */
  readonly tenant?: string | undefined;
  /** File with the key of an enrolment that got no answer, so that the next attempt sends the same request. */
  readonly pendingPath: string;
  readonly signal?: AbortSignal;
}

interface Pending {
  readonly id: string;
  /** The name in the request. */
  readonly name: string;
  readonly keyPem: string;
  /** DER, base64. */
  readonly csr: string;
}

/**
 * Makes a key, gets a certificate for it from a controller, and answers the identity of this host. Nothing in the
 * answer is used before its proof is verified. Throws `AppError` with the controller's code when it refuses, for
 * example because the token was used or has expired; `AppError("unavailable")` when the controller cannot be reached.
 */
export async function enrol(options: EnrolOptions): Promise<Identity> {
  const token = parseJoinToken(options.token);
  const pending = (await loadPending(options, token)) ?? (await createPending(options, token));
  const proof = mac(token, Buffer.from(pending.csr, "base64")).toString("base64");
  const answer = await post(options, { id: token.id, csr: pending.csr, proof, named: options.isNamed });
  verify(answer, token, pending.keyPem);
  requireSame(answer, options);
  return { ...identityOf(answer, pending.keyPem, new URL(options.controller).hostname), token: token.id };
}

/** Deletes the key of an unfinished enrolment. Call it after the identity is stored. */
export async function forgetPending(pendingPath: string): Promise<void> {
  await rm(pendingPath, { force: true });
}

async function loadPending(options: EnrolOptions, token: JoinToken): Promise<Pending | undefined> {
  try {
    const pending: unknown = JSON.parse(await readFile(options.pendingPath, "utf8"));
    return isPending(pending) && pending.id === token.id && pending.name === options.name ? pending : undefined;
  } catch {
    // The file is missing or damaged, so a new key is made.
    return undefined;
  }
}

async function createPending(options: EnrolOptions, token: JoinToken): Promise<Pending> {
  const keyPem = createKeyPem();
  const { name } = options;
  const pending: Pending = { id: token.id, name, keyPem, csr: createRequest(keyPem, name).toString("base64") };
  await writeAtomically(nodeFiles, options.pendingPath, Buffer.from(JSON.stringify(pending)));
  return pending;
}

function verify(answer: EnrolAnswer, token: JoinToken, keyPem: string): void {
  const expected = mac(token, answerProofText(answer));
  const proof = Buffer.from(answer.proof, "base64");
  if (proof.length !== expected.length || !timingSafeEqual(proof, expected)) {
    throw new AppError(
      "denied",
      "The answer to the enrolment does not prove that it comes from the controller that made the token.",
    );
  }
  requireOwnCertificate(Buffer.from(answer.certificate, "base64"), keyPem);
}

/** Data of this agent must not become that of another host or tenant. Controllers of earlier versions ignore `named`. */
function requireSame({ host, tenant }: EnrolAnswer, { name, isNamed, tenant: former = tenant }: EnrolOptions): void {
  if (isNamed && host !== name)
    throw new AppError("conflict", `The join token is for the host ${host}, but this agent is named ${name}.`);
  if (tenant !== former)
    throw new AppError(
      "conflict",
      `The join token is for the tenant ${tenant}, but this folder has data of ${former}.`,
    );
}

function identityOf(answer: EnrolAnswer, keyPem: string, hostname: string): Identity {
  const controllers = answer.controllers.length > 0 ? answer.controllers : [`${hostname}:${answer.agentPort}`];
  const { host, tenant, certificate, authorities } = answer;
  return { format: 1, host, tenant, keyPem, certificate, authorities, controllers };
}

function mac(token: JoinToken, data: Uint8Array): Buffer {
  return createHmac("sha256", token.secret).update(data).digest();
}

async function post(options: EnrolOptions, body: EnrolRequest): Promise<EnrolAnswer> {
  const url = new URL("agent/enrol", options.controller.endsWith("/") ? options.controller : `${options.controller}/`);
  const { status, text } = await call(url, JSON.stringify(body), options.signal);
  const envelope = parsed(text);
  if (envelope?.status === "ok" && isAnswer(envelope.message)) return envelope.message;
  const code = isErrorCode(envelope?.code)
    ? envelope.code
    : status >= 500 || status === 429
      ? "unavailable"
      : "invalid";
  if (envelope?.status === undefined)
    throw new AppError(code, `${url.origin} answers HTTP ${status}, but not as a controller does. ${WHICH_PORT}`);
  throw new AppError(code, `The controller refused the enrolment (HTTP ${status}): ${String(envelope.message)}`);
}

function call(url: URL, body: string, signal: AbortSignal | undefined): Promise<{ status: number; text: string }> {
  const request = url.protocol === "https:" ? requestSecure : requestPlain;
  const headers = {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    accept: "application/json",
  };
  const within = AbortSignal.any([AbortSignal.timeout(ENROL_CALL_MS), ...(signal ? [signal] : [])]);
  return new Promise((resolve, reject) => {
    const fail = (error: unknown) => reject(notReached(url, error));
    const sent = request(url, { method: "POST", headers, signal: within }, (response) => {
      readText(response).then((text) => resolve({ status: response.statusCode ?? 0, text }), fail);
    });
    sent.on("error", fail);
    sent.end(body);
  });
}

const WHICH_PORT =
  "The setting of the controller names its HTTP port, 8080 by default; the agent port is told at the enrolment.";

/**
 * Codes of errors that occur when the server uses another protocol. Their texts, such as "socket hang up", do not say
 * so.
 */
const OTHER_PROTOCOL = /^(?:ECONNRESET|EPROTO|ERR_SSL_|HPE_)/;

function notReached(url: URL, error: unknown): AppError {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const hint = OTHER_PROTOCOL.test(code)
    ? `. What listens there may not speak ${url.protocol.slice(0, -1).toUpperCase()}. ${WHICH_PORT}`
    : "";
  return new AppError("unavailable", `${url.origin} cannot be reached: ${errorText(error)}${hint}`, { cause: error });
}

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    if (!Buffer.isBuffer(chunk)) continue;
    bytes += chunk.length;
    if (bytes > ENROL_ANSWER_MAX_BYTES) throw new AppError("too_large", "The answer is too large.");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

interface Envelope {
  readonly status?: unknown;
  readonly message?: unknown;
  readonly code?: unknown;
}

function parsed(text: string): Envelope | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === "string" && Object.hasOwn(ERROR_CODES, value);
}

function isPending(value: unknown): value is Pending {
  return isRecord(value) && [value.id, value.name, value.keyPem, value.csr].every(isText);
}

function isAnswer(value: unknown): value is EnrolAnswer {
  if (!isRecord(value)) return false;
  const texts = [value.certificate, value.host, value.tenant, value.proof].every(isText);
  return texts && isTexts(value.authorities) && isTexts(value.controllers) && typeof value.agentPort === "number";
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every(isText);
}
