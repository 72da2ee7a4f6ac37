"""Write the three source files of dim_customer: the same bytes on every machine and Python version.

Run ``python3 data/customers/generate.py``. Customers 1001 to 1014 are told by hand, each shows one thing
(see README.md); the others are random but seeded.
"""

from __future__ import annotations

import csv
import datetime as dt
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parent
Row = tuple[object, ...]

CRM = (
    "change_no,loaded_at,customer_id,updated_at,op,"  # op: I, U or D
    "customer_name,customer_status,email"
)
ERP = "change_no,loaded_at,cust_no,updated_at,is_deleted,cust_name,credit_limit,payment_terms"
WEB = "snapshot_date,customer_id,email,email_opt_in,preferred_contact_method"
GIVEN = "Ada Ben Cleo Dev Eva Finn Gus Hana Ivo Jun Kai Lea Max Nia Oto Pia Quin Rosa Sam Tia"
TERMS = ["net 14", "net 30", "prepaid"]
FAMILY = "Adler Brandt Costa Dumas Evans Ferri Gruber Holm Ito Jansen Kaya Larsen Moreau Novak"

FIRST_DAY = dt.date(2022, 1, 1)
# The profile export ran every day of five weeks, except the 17th and 18th: nobody took a snapshot then.
SNAPSHOTS = [FIRST_DAY + dt.timedelta(days=n) for n in range(35) if n not in (16, 17)]
OPENING = dt.datetime(2020, 1, 1)
CLOSING = dt.datetime(2022, 6, 30)


class Log:
    """Changes of one system: said at ``updated_at``, arrived at ``loaded_at``."""

    def __init__(self) -> None:
        self.rows: list[tuple[dt.datetime, int, Row]] = []

    def add(self, updated_at: str | dt.datetime, *values: object, days_late: int = 0) -> None:
        said = dt.datetime.fromisoformat(updated_at) if isinstance(updated_at, str) else updated_at
        night = dt.datetime.combine(said.date(), dt.time(2)) + dt.timedelta(days=1 + days_late)
        self.rows.append((night, len(self.rows), (said, *values)))

    def in_order_of_arrival(self) -> list[Row]:
        ordered = sorted(self.rows, key=lambda row: row[:2])
        return [(number, night, row[1], row[0], *row[2:]) for number, (night, _, row) in enumerate(ordered, 1)]


def told_customers(crm: Log, erp: Log, web: dict[int, list[Row]]) -> None:
    """Customers 1001 to 1014."""
    # 1001 A-B-A: active, paused, active are three versions
    crm.add("2020-02-03 09:15", 1001, "I", "Anna Lind", "active", "anna@example.com")
    crm.add("2020-08-01 10:00", 1001, "U", "Anna Lind", "paused", "anna@example.com")
    crm.add("2020-10-01 10:00", 1001, "U", "Anna Lind", "active", "anna@example.com")
    erp.add("2020-02-04 06:00", 1001, False, "LIND ANNA", 12000, "net 30")
    web[1001] = [("anna@example.com", True, "email")] * len(SNAPSHOTS)

    # 1002 the six slices that become three. Boundaries of 2020-01-05, 2022-03-01 and 2022-05-01 come from
    # changes that the dimension does not show: the ERP's spelling of a name that the CRM owns, and an
    # e-mail address, which is overwritten (type 1) and therefore opens no version.
    crm.add("2020-01-01", 1002, "I", "Nordlicht GmbH", "active", "office@nordlicht.example")
    erp.add("2020-01-01", 1002, False, "NORDLICHT", 40000, "net 30")
    erp.add("2020-01-05", 1002, False, "NORDLICHT GMBH", 40000, "net 30")
    # touched, no change: not even a slice
    crm.add("2020-01-07", 1002, "U", "Nordlicht GmbH", "active", "office@nordlicht.example")
    erp.add("2020-01-09", 1002, False, "NORDLICHT GMBH", 30000, "net 30")
    crm.add("2020-01-11", 1002, "D", None, None, None)
    erp.add("2020-01-11", 1002, True, None, None, None)
    crm.add("2022-01-01", 1002, "I", "Nordlicht GmbH", "active", "office@nordlicht.example")
    erp.add("2022-01-01", 1002, False, "NORDLICHT GMBH", 30000, "net 30")
    crm.add("2022-03-01", 1002, "U", "Nordlicht GmbH", "active", "hello@nordlicht.example")
    erp.add("2022-05-01", 1002, False, "NORDLICHT GMBH & CO KG", 30000, "net 30")
    crm.add("2022-06-01", 1002, "D", None, None, None)
    erp.add("2022-06-01", 1002, True, None, None, None)

    # 1003 the CRM owns the name, also when it has none: NULL, not the ERP's name
    crm.add("2020-03-01 08:00", 1003, "I", "Berg & Söhne", "active", "info@berg.example")
    erp.add("2020-03-01 08:00", 1003, False, "BERG UND SOEHNE", 5000, "prepaid")
    crm.add("2021-03-01 08:00", 1003, "U", None, "active", "info@berg.example")

    # 1004 known to the ERP first: its name stands in until the CRM has the customer
    erp.add("2020-05-10 06:00", 1004, False, "OKAFOR C", 2500, "net 14")
    crm.add("2020-05-20 14:30", 1004, "I", "Chidi Okafor", "active", "chidi@example.com")

    # 1005 dropped by the CRM, kept by the ERP: still a customer, under the ERP's name
    crm.add("2020-04-01 11:00", 1005, "I", "Dana Ruiz", "active", "dana@example.com")
    erp.add("2020-04-02 06:00", 1005, False, "RUIZ DANA", 8000, "net 30")
    crm.add("2021-09-01 11:00", 1005, "D", None, None, None)

    # 1006 the ERP alone speaks about credit: it takes the limit away (NULL) and gives it back
    crm.add("2020-06-01 09:00", 1006, "I", "Emil Sato", "active", "emil@example.com")
    erp.add("2020-06-02 06:00", 1006, False, "SATO EMIL", 15000, "net 30")
    erp.add("2020-11-02 06:00", 1006, False, "SATO EMIL", None, "prepaid")
    erp.add("2021-02-01 06:00", 1006, False, "SATO EMIL", 15000, "net 30")

    # 1007 e-mail: the newest statement of web and CRM wins, whichever it is
    crm.add("2021-12-01 10:00", 1007, "I", "Farah Nasser", "active", "farah@old.example")
    profiles = {0: ("farah@web.example", True, "email"), 20: ("farah@shop.example", True, "phone")}
    web[1007] = profile_history(profiles)
    crm.add("2022-01-15 16:45:30.250", 1007, "U", "Farah Nasser", "active", "farah@crm.example")

    # 1008 three changes of one moment (change_no decides); later deleted and re-created, unchanged,
    # within one moment, which is no event
    crm.add("2020-07-01 12:00", 1008, "I", "Gita Rao", "lead", "gita@example.com")
    crm.add("2020-07-01 12:00", 1008, "U", "Gita Rao", "active", "gita@example.com")
    crm.add("2020-07-01 12:00", 1008, "U", "Gita Rao-Meyer", "active", "gita@example.com")
    crm.add("2021-01-01 12:00", 1008, "D", None, None, None)
    crm.add("2021-01-01 12:00", 1008, "I", "Gita Rao-Meyer", "active", "gita@example.com")

    # 1009 a late row: the change of 2020-09-15 arrived after that of 2020-12-01
    erp.add("2020-08-01 06:00", 1009, False, "HALL IAN", 1000, "net 30")
    erp.add("2020-12-01 06:00", 1009, False, "HALL IAN", 3000, "net 30")
    erp.add("2020-09-15 06:00", 1009, False, "HALL IAN", 2000, "net 30", days_late=120)

    # 1010 deleted, back with the same values: two versions and a gap
    crm.add("2020-02-01 09:00", 1010, "I", "O'Neill, Byrne & Co", "active", "post@oneill.example")
    crm.add("2020-06-01 09:00", 1010, "D", None, None, None)
    crm.add("2020-09-01 09:00", 1010, "I", "O'Neill, Byrne & Co", "active", "post@oneill.example")

    # 1011 touched every month and sent twice: one version
    for month in range(1, 13):
        for _ in range(1 + (month == 6)):
            crm.add(f"2021-{month:02}-01 03:00", 1011, "U", "Kim Park", "active", "kim@example.com")

    # 1012 deleted before it was ever seen, deleted twice at the end: one version, no error
    erp.add("2020-01-15 06:00", 1012, True, None, None, None)
    erp.add("2020-02-15 06:00", 1012, False, "LOPEZ MARIA", 700, "prepaid")
    erp.add("2021-02-15 06:00", 1012, True, None, None, None)
    erp.add("2021-03-15 06:00", 1012, True, None, None, None)

    # 1013 a visitor of the web shop whom neither CRM nor ERP knows: no customer
    web[1013] = [("visitor@example.com", False, "none")] * len(SNAPSHOTS)

    # 1014 two rows without a place on the timeline beside one that has: set aside, counted in the log
    crm.add("2021-05-05 05:00", 1014, "I", "Noor Haddad", "active", "noor@example.com")
    crm.add("2021-05-06 05:00", None, "U", "Noor Haddad", "paused", "noor@example.com")
    lost = (None, 1014, False, "HADDAD NOOR", 900, "net 14")
    erp.rows.append((dt.datetime(2021, 5, 7, 2), len(erp.rows), lost))


def profile_history(changes: Mapping[int, Row]) -> list[Row]:
    """One profile per snapshot from the positions at which it changes."""
    profile: Row = ()
    history = []
    for position in range(len(SNAPSHOTS)):
        profile = changes.get(position, profile)
        history.append(profile)
    return history


def random_customers(dice: random.Random, crm: Log, erp: Log, web: dict[int, list[Row]]) -> None:
    """Customers 1015 to 1200."""
    for number in range(1015, 1201):
        first, last = pick(dice, GIVEN.split()), pick(dice, FAMILY.split())
        address = f"{first}.{last}{number}@example.com".lower()
        random_history(dice, number, (f"{first} {last}", f"{last} {first}".upper(), address), crm, erp)
        if number % 4 == 0:
            web[number] = random_profiles(dice, address)


def random_history(dice: random.Random, number: int, who: tuple[str, str, str], crm: Log, erp: Log) -> None:
    """A customer's life: changes, touches without a change, deletes, returns, some arriving late."""
    name, erp_name, address = who
    status, limit, terms = "active", random_limit(dice), pick(dice, TERMS)
    known_to_erp, gone = dice.random() < 0.8, False
    day = OPENING + dt.timedelta(days=int(dice.random() * 600), minutes=int(dice.random() * 1440))
    crm.add(day, number, "I", name, status, address)
    if known_to_erp:
        erp.add(day + dt.timedelta(hours=6), number, False, erp_name, limit, terms)
    while (day := day + random_pause(dice)) < CLOSING:
        late = 30 + int(dice.random() * 90) if dice.random() < 0.05 else 0
        event = dice.random()
        if not gone and event < 0.05:
            crm.add(day, number, "D", None, None, None, days_late=late)
            if known_to_erp:
                erp.add(day, number, True, None, None, None, days_late=late)
            gone = True
        elif not gone and known_to_erp and event < 0.45:
            limit = random_limit(dice)
            terms = pick(dice, TERMS) if dice.random() < 0.3 else terms
            erp.add(day, number, False, erp_name, limit, terms, days_late=late)
        else:
            if event > 0.75:
                status = pick(dice, ["active", "paused", "closed"])
            elif event > 0.6:
                address = f"{address.split('@')[0]}@mail{int(dice.random() * 9)}.example"
            crm.add(day, number, "U", name, status, address, days_late=late)
            gone = False


def random_profiles(dice: random.Random, address: str) -> list[Row]:
    changes: dict[int, Row] = {0: (address, dice.random() < 0.5, "email")}
    for position in range(1, len(SNAPSHOTS)):
        if dice.random() < 0.04:
            if dice.random() < 0.3:
                address = f"{address.split('@')[0]}@shop{position}.example"
            contact = pick(dice, ["email", "phone", "post", "none"])
            changes[position] = (address, dice.random() < 0.5, contact)
    return profile_history(changes)


def random_limit(dice: random.Random) -> int:
    return 500 * (1 + int(dice.random() * 40))


def random_pause(dice: random.Random) -> dt.timedelta:
    days = 1 + int(dice.random() * 240)
    return dt.timedelta(days=days, seconds=int(dice.random() * 86400))


def pick(dice: random.Random, choices: Sequence[str]) -> str:
    """Like random.choice, whose sequence of draws Python does not promise to keep."""
    return choices[int(dice.random() * len(choices))]


def text(value: object) -> object:
    """UTC moments carry their Z: no reader can take them for local time."""
    if isinstance(value, dt.datetime):
        return value.isoformat(timespec="milliseconds" if value.microsecond else "seconds") + "Z"
    return str(value).lower() if isinstance(value, bool) else value


def write(name: str, header: str, rows: Iterable[Row]) -> None:
    with (HERE / name).open("w", encoding="utf-8", newline="") as file:
        file.write(header + "\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([text(value) for value in row] for row in rows)


def main() -> None:
    crm, erp = Log(), Log()
    web: dict[int, list[Row]] = {}
    told_customers(crm, erp, web)
    random_customers(random.Random(1002), crm, erp, web)
    write("crm_changes.csv", CRM, crm.in_order_of_arrival())
    write("erp_changes.csv", ERP, erp.in_order_of_arrival())
    profiles = [(day, number, *web[number][n]) for n, day in enumerate(SNAPSHOTS) for number in sorted(web)]
    write("web_snapshots.csv", WEB, profiles)


if __name__ == "__main__":
    main()
