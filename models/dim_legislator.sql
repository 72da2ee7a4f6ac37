-- Members of the US Congress since 1955: what the file of sitting members said at each of its snapshots (since
-- 2012), the register of terms, and social media accounts. Decisions:
--   existence    while the file lists the person or a term runs; how far the register is believed is said in
--                stg_congress_terms. Accounts of others (a hundred people) alone make no legislator.
--   the seat     (chamber, state, district, class) is owned by the register: elections fix it and its dates are exact,
--                the file follows days later. first_present, because a senator's NULL district is a value.
--   party        is owned by the file, which saw changes within a term; the register tells only the last party of a
--                term. Type 6: the party then, now and before.
--   office       is versioned as the file had it. On the first day of a Congress (2017, 2021, 2025) it is NULL for
--                some four hundred members until rooms are entered hours later. That is what was known, so it stays: a
--                short version without an office, and the old room opens a new version. Nothing is carried forward.
--   names and    are corrected and reformatted more than they change: the newest is shown in all versions (type 1),
--   contact      also in the decades before the file began.
--   gender and   stay as first said (type 0).
--   entered_on
{{ config(materialized='healing_table', unique_key='bioguide') }}

{{ healing_tables.dimension(
    sources={
        'members': {
            'relation': ref('stg_congress_members'), 'snapshot_at': 'snapshot_at', 'where': 'is_sitting',
            'calendar': ref('stg_congress_members_calendar')
        },
        'terms': {'relation': ref('stg_congress_terms'), 'valid_from': 'term_start', 'valid_to': 'term_end'},
        'social': {
            'relation': ref('stg_congress_social_media'), 'snapshot_at': 'snapshot_at', 'tie_break_by': 'row_no',
            'calendar': ref('stg_congress_social_media_calendar')
        }
    },
    attributes={
        'govtrack': {'from': ['members', 'terms'], 'scd_type': 1},
        'first_name': {'from': ['members'], 'scd_type': 1},
        'last_name': {'from': ['members', 'terms'], 'scd_type': 1},
        'full_name': {'from': ['members'], 'scd_type': 1},
        'birthday': {'from': ['members'], 'scd_type': 1},
        'gender': {'from': ['members'], 'scd_type': 0},
        'entered_on': {'from': ['terms.term_start'], 'scd_type': 0},
        'chamber': {'from': ['terms', 'members'], 'rule': 'first_present'},
        'state': {'from': ['terms', 'members'], 'rule': 'first_present'},
        'district': {'from': ['terms', 'members'], 'rule': 'first_present'},
        'senate_class': {'from': ['terms', 'members'], 'rule': 'first_present'},
        'party': {'from': ['members', 'terms'], 'scd_type': 6},
        'office': {'from': ['members']},
        'address': {'from': ['members'], 'scd_type': 1},
        'phone': {'from': ['members'], 'scd_type': 1, 'changed_at': true},
        'website': {'from': ['members'], 'scd_type': 1},
        'twitter': {'from': ['social'], 'scd_type': 3},
        'facebook': {'from': ['social'], 'scd_type': 1},
        'youtube': {'from': ['social'], 'scd_type': 1},
        'instagram': {'from': ['social'], 'scd_type': 1}
    },
    exists_in=['members', 'terms']
) }}
