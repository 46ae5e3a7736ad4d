/* Free addresses of networks, with what is taken on record; wrong entries are told, not guessed. */
var request = JSON.parse(decodeURIComponent(INPUT));

function number(address) {
  var parts = String(address).split(".");
  if (parts.length !== 4) return NaN;
  return _.reduce(
    parts,
    function (sum, part) {
      var n = /^\d{1,3}$/.test(part) ? parseInt(part, 10) : NaN;
      return n <= 255 ? sum * 256 + n : NaN;
    },
    0,
  );
}

function text(n) {
  return [24, 16, 8, 0]
    .map(function (shift) {
      return Math.floor(n / Math.pow(2, shift)) % 256;
    })
    .join(".");
}

function Network(cidr) {
  var parts = cidr.split("/");
  this.size = Math.pow(2, 32 - parseInt(parts[1], 10));
  this.first = Math.floor(number(parts[0]) / this.size) * this.size;
}
Network.prototype.holds = function (n) {
  return n >= this.first && n < this.first + this.size;
};
Network.prototype.free = function (taken, count) {
  var found = [];
  for (var n = this.first + 1; n < this.first + this.size - 1 && found.length < count; n++)
    if (!taken[n]) found.push(text(n));
  return found;
};

var rows = odb.mql("SELECT address FROM /matrix/addresses/taken LIMIT -1").data;
var taken = {};
var wrong = [];
_.each(rows, function (row) {
  var n = number(row.address);
  if (isNaN(n)) wrong.push(row.address);
  else taken[n] = true;
});
OUTPUT = {
  wrong: wrong.sort(),
  networks: _.map(request.networks, function (cidr) {
    var network = new Network(cidr);
    var used = _.filter(_.keys(taken), function (n) {
      return network.holds(Number(n));
    });
    return { network: cidr, used: used.length, free: network.free(taken, request.count) };
  }),
};
