"""Questions of a morning to a data warehouse, each to other tables."""

CONTROL = True
CELLS = [
    # 0
    """
HOME = "data/warehouse"


def table(name):
    spark.read.parquet(f"{HOME}/{name}").createOrReplaceTempView(name)
""",
    # 1
    '''
table("web_sales")
spark.sql("""
    select date_trunc('month', sold) month, count(*) orders, count(distinct customer_id) customers,
           sum(cents * units) / 100 revenue
    from web_sales group by 1 order by 1
""").show()
''',
    # 2
    '''
table("store_sales")
spark.sql("""
    with s as (select item_id, sum(units) units, sum(cents * units) cents from store_sales group by item_id),
    r as (select *, rank() over (order by cents desc, item_id) r from s)
    select * from r where r <= 10 order by r
""").show()
''',
    # 3
    '''
table("catalog_sales")
spark.sql("""
    select orders, count(*) customers from (select customer_id, count(*) orders from catalog_sales group by customer_id)
    group by orders order by orders
""").toPandas().head(12)
''',
    # 4
    '''
table("tickets")
spark.sql("""
    select priority, dayofweek(opened) dow, count(*) n, percentile(minutes, 0.9) p90
    from tickets group by priority, dayofweek(opened) order by priority, dow
""").show(30)
''',
    # 5
    '''
table("payments")
spark.sql("""
    select kind, count(*) n from (
        select kind, account, booked, sum(cents) over (partition by account order by booked, payment) balance
        from payments
    ) where balance < -200000 group by kind order by kind
""").show()
''',
    # 6
    '''
table("visits")
spark.sql("""
    select count(*) visits, avg(pages) pages from (
        select visitor, day, count(*) pages from (select visitor, date(at) day, page from visits)
        group by visitor, day
    )
""").show()
''',
    # 7
    '''
table("shipments")
spark.sql("""
    select carrier, substr(zip, 1, 1) zone, round(avg(days), 3) days, sum(grams) grams
    from shipments group by carrier, substr(zip, 1, 1) having count(*) > 1000 order by days desc, carrier, zone limit 15
""").show()
''',
    # 8
    '''
table("staff")
spark.sql("""
    select e.department, count(*) n, max(e.salary - m.salary) gap
    from staff e join staff m on e.manager = m.employee
    where e.salary > m.salary group by e.department order by gap desc, e.department limit 10
""").show()
''',
    # 9
    """
table("reviews")
spark.sql(
    "select text, stars, count(*) n from reviews group by cube(text, stars) order by text, stars"
).show(50)
""",
    # 10
    '''
table("meters")
spark.sql("""
    insert overwrite directory 'out/warehouse/meter_days' using parquet
    select meter, date(read) day, sum(watt_hours) wh, max(phase) phase from meters group by meter, date(read)
""")
''',
    # 11
    '''
spark.sql("""
    select count(*) from (select explode(sequence(date'2000-01-01', date'2023-12-31')) d)
    where dayofweek(d) = 6 and day(d) = 13
""").show()
''',
    # 12
    """
spark.sql("show views").orderBy("viewName").show()
""",
]
UNORDERED: set[int] = set()
