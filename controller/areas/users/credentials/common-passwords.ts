/** Words of this field, and common passwords that are missing in the library's list. Attackers try them early. */
export const OWN_WORDS: readonly string[] = `
123456 password 123456789 12345678 12345 qwerty 1234567 111111 123123 abc123 1234567890 password1 1234 iloveyou 000000
admin letmein welcome monkey dragon sunshine princess football master login shadow passw0rd superman qazwsx michael
baseball trustno1 charlie starwars whatever freedom jordan hunter batman soccer ashley bailey access flower mustang
hello secret summer winter spring autumn administrator root toor guest user test default changeme system manager
operator oracle cisco server service support public private network company office backup database postgres mysql
mongodb cassandra redis docker kubernetes ansible jenkins gitlab zabbix nagios prometheus grafana monitor monitoring
platform matrix production staging development letmein1 qwerty123 asdfgh zxcvbn asdf1234 qwertyuiop 1q2w3e4r
1qaz2wsx zaq12wsx q1w2e3r4 abcdef abcd1234 a1b2c3d4 aa123456 password123 admin123 welcome1 pass pass123 passwort
hallo geheim sommer winter berlin hamburg muenchen woaini 5201314 147258369 987654321 666666 888888 999999 112233
121212 654321 696969 555555 222222 333333 444444 777777 123321 1q2w3e 11111111 00000000 88888888 love money jesus
ninja computer internet samsung google pokemon killer pepper ginger cookie banana orange purple silver golden
chelsea arsenal liverpool thomas robert daniel jessica michelle andrew matthew joshua jennifer hannah george
january february march april june july august september october november december monday tuesday wednesday thursday
friday saturday sunday`
  .trim()
  .split(/\s+/);
