import { expect, test } from "vitest";
import { Redaction, REMOVED } from "./redaction.ts";

const redaction = new Redaction(['kestrel&"1']);

/** The word of each secret: none of them may be left. */
const SECRET = "Hunter2x";

test.each([
  `https://ana:${SECRET}@db.example/x`,
  `https://ana:p@${SECRET}@db.example/x`,
  `redis://:p/${SECRET}@cache:6379`,
  `https://${SECRET}@git.example`,
  `cannot open postgres://ana:${SECRET}@db/x: refused`,
  `https://odp.example/x?token=${SECRET}&a=b`,
  `Authorization: Bearer ${SECRET}`,
  `authorization: Basic ${SECRET}`,
  `Cookie: odp_session=${SECRET}; a=b`,
  `PASSWORD=${SECRET} run.sh`,
  `db_password: "a ${SECRET}"`,
  `mysql --password ${SECRET} -h x`,
  `tool --api-key=${SECRET}`,
  `the password is ${SECRET}`,
  `{"token":"${SECRET}"}`,
  JSON.stringify({ out: JSON.stringify({ secret: `a ${SECRET}` }) }),
  `export AWS_SECRET_ACCESS_KEY='${SECRET}'`,
  `sid=${SECRET}`,
  `odp_${SECRET}${"a".repeat(35)}`,
  `odp1.abc.${SECRET}`,
  `eyJhbGciOi.${SECRET}.abc`,
  `-----BEGIN OPENSSH PRIVATE KEY-----\n${SECRET}\n-----END OPENSSH PRIVATE KEY-----`,
  `-----BEGIN PRIVATE KEY-----\n${SECRET}`,
  `$argon2id$v=19$m=1,t=2$${SECRET}`,
  `x ${SECRET}QzE4bW9uZGF5c3RhcnQ9`,
  `${SECRET.replace("2", "")}${SECRET}${"abcdEFGH".repeat(4)}`,
  'a kestrel&"1 b',
  JSON.stringify({ out: 'a kestrel&"1 b' }),
  "https://odp.example/?p=kestrel%26%221",
  `Authorization: ApiKey ${SECRET}`,
  `Cookie: a=b; remember=${SECRET}`,
  `password=ab;${SECRET},c)${SECRET}`,
  `DB_PASSWORD_PROD=${SECRET}`,
  `password2: ${SECRET}`,
  `passwordHash => '${SECRET}'`,
  `<password>${SECRET}</password>`,
  `snmp community=${SECRET}`,
  `curl -u ana:${SECRET} https://x`,
  `sshpass -p ${SECRET} ssh x`,
  `mysql -h db -p${SECRET}`,
  `create user x identified by '${SECRET}'`,
  `https://ana:p'${SECRET}@db.example`,
  `{"name":"password","value":"${SECRET}"}`,
  JSON.stringify({ out: JSON.stringify({ secret: `a"${SECRET}`, more: 1 }) }),
  `password="${"a ".repeat(4_096)}${SECRET}"`,
  `-----BEGIN PGP PRIVATE KEY BLOCK-----\n${SECRET}\n-----END PGP PRIVATE KEY BLOCK-----`,
  // Slashes do not make a path of a key.
  `wJalrXUtnFEMI/K7MDENG/bPx${SECRET}KEY`,
])("a secret is removed from %s", (text) => {
  for (const clean of [redaction.text(text), JSON.stringify(redaction.value({ message: [text] }))]) {
    expect(clean).not.toContain(SECRET);
    expect(clean).not.toContain("kestrel");
    expect(clean).toContain(REMOVED);
  }
});

test.each([
  "password",
  "dbPassword",
  "PGPASSWORD",
  "passwordHash",
  "password2",
  "DB_PASSWORD_PROD",
  "accessKeyId",
  "db_password",
  "token",
  "apiKey",
  "sessionId",
  "privateKey",
  "sert",
  "sshkey",
  "keys",
])("the member %s is removed with all in it", (name) => {
  expect(redaction.value({ [name]: { a: SECRET }, more: [{ [name]: 1234 }] })).toEqual({
    [name]: REMOVED,
    more: [{ [name]: REMOVED }],
  });
});

test.each([
  { name: "password", value: SECRET },
  { key: "/acme/etc/mail.password", value: { a: SECRET } },
  { headers: [["authorization", SECRET]] },
  { argv: ["tool", "--password", SECRET] },
])("a value is removed by the name beside it: %j", (value) => {
  expect(JSON.stringify(redaction.value(value))).toMatch(new RegExp(`^(?!.*${SECRET}).*"\\[removed\\]"`));
});

test.each([
  "web-1 is offline",
  "exit code 7: no space left on /var/lib/odp-agent/outbox/0000000001",
  "01ARZ3NDEKTSV4RRFFQ69G5FAV",
  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
  "http://odp.example:8080/healthz",
  '# TYPE odp_http_calls_total counter\nodp_http_calls_total{area="hosts",status="200"} 12',
  "getMonitoringPolicyDeployConfByName",
  "/matrix/jobs/Nightly/Backup2/of/All/Servers",
])("what is no secret stays: %s", (text) => {
  expect(redaction.text(text)).toBe(text);
});

test("a text of a megabyte takes no time that grows with its square", () => {
  for (const piece of [
    "a",
    "a.",
    "-",
    "://",
    "a1B",
    "password ",
    '"',
    "\\",
    '\\"',
    "token=,",
    "sshpass ",
    "cookie:",
    "-u a",
    'key\\"=',
  ])
    expect(redaction.text(piece.repeat(1 << 17)).length).toBeGreaterThan(0);
});
