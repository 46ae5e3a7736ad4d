import { readFileSync } from "node:fs";
import { errorText, type AppError } from "../../common/errors.ts";
import type { StoreAccess } from "../store/access.ts";

/** TLS and accounts of etcd and Cassandra. The files are read at the start. */
export const STORE_ACCESS_SETTINGS = [
  {
    name: "etcd_ca_file",
    meaning:
      "Certificates (PEM) of the authority of etcd's members: with them etcd is reached by TLS, and its certificates are for the name or address in etcd_endpoints",
    default: "none: without TLS",
  },
  { name: "etcd_cert_file", meaning: "The controller's certificate for etcd (PEM)", default: "none" },
  { name: "etcd_key_file", meaning: "Its key (PEM)", default: "none" },
  { name: "etcd_user", meaning: "The controller's user of etcd", default: "none" },
  { name: "etcd_password", meaning: "Its password; better in a file", default: "none", isSecret: true },
  { name: "etcd_password_file", meaning: "File with its password in one line", default: "none" },
  {
    name: "cassandra_ca_file",
    meaning:
      "Certificates (PEM) of the authority of Cassandra's nodes: with them Cassandra is reached by TLS, and its certificates are for the addresses that nodes tell each other",
    default: "none: without TLS",
  },
  { name: "cassandra_cert_file", meaning: "The controller's certificate for Cassandra (PEM)", default: "none" },
  { name: "cassandra_key_file", meaning: "Its key (PEM)", default: "none" },
  { name: "cassandra_user", meaning: "The controller's role in Cassandra", default: "none" },
  { name: "cassandra_password", meaning: "Its password; better in a file", default: "none", isSecret: true },
  { name: "cassandra_password_file", meaning: "File with its password in one line", default: "none" },
] as const;

type Name = (typeof STORE_ACCESS_SETTINGS)[number]["name"];
type Store = "etcd" | "cassandra";

export interface GivenStoreAccess {
  /** Text of a setting; empty if it is not set. */
  readonly text: (name: Name) => string;
  readonly wrong: (name: Name, why: string) => AppError;
}

/** Reads the configured files; the result holds their contents. */
export function storeAccess(given: GivenStoreAccess, store: Store): StoreAccess {
  const tls = tlsOf(given, store);
  const account = accountOf(given, store);
  return { ...(tls && { tls }), ...(account && { account }) };
}

function tlsOf(given: GivenStoreAccess, store: Store): StoreAccess["tls"] {
  const [ca, cert, key] = [`${store}_ca_file`, `${store}_cert_file`, `${store}_key_file`] as const;
  const isSet = (name: Name): boolean => given.text(name) !== "";
  if (isSet(cert) !== isSet(key))
    throw given.wrong(isSet(cert) ? key : cert, "it is missing beside the other of the two");
  if (!isSet(ca)) {
    if (isSet(cert)) throw given.wrong(ca, "it is missing: a certificate is shown by TLS only");
    return undefined;
  }
  const client = isSet(cert) ? { cert: fileOf(given, cert), key: fileOf(given, key) } : undefined;
  return { ca: fileOf(given, ca), ...(client && { client }) };
}

function accountOf(given: GivenStoreAccess, store: Store): StoreAccess["account"] {
  const [user, password, file] = [`${store}_user`, `${store}_password`, `${store}_password_file`] as const;
  if (given.text(password) !== "" && given.text(file) !== "")
    throw given.wrong(file, `${password} says already what it is`);
  const secret =
    given.text(file) === ""
      ? given.text(password)
      : fileOf(given, file)
          .toString("utf8")
          .replace(/\r?\n$/, "");
  if (given.text(user) === "" && secret === "") return undefined;
  if (given.text(user) === "") throw given.wrong(user, "it is missing beside the password");
  if (secret === "") throw given.wrong(password, `the password of ${given.text(user)} is missing`);
  return { user: given.text(user), password: secret };
}

function fileOf({ text, wrong }: GivenStoreAccess, name: Name): Buffer {
  try {
    return readFileSync(text(name));
  } catch (error) {
    throw wrong(name, `${text(name)} cannot be read: ${errorText(error)}`);
  }
}
